// Names of a graph's nodes by the modules that they belong to: "features.3.conv.1" instead of torch's "batch_norm_50".
#pragma once

#include <string>
#include <vector>

#include "import/torch/exported/program.h"

namespace pinnace::torch_import {

/// One name per node of the graph; empty for a node of the outermost module, which keeps torch's. Of the nodes that
/// give tensors, one that is alone in its module's own code has the module's path, "features.3.conv.1"; where there
/// are several, the operator follows, numbered from its second use on: "layers.0.attn:softmax",
/// "layers.0.attn:matmul_1". The second call of a module is "relu@1". python/pinnace/torch/module_names.py gives the
/// same names to torch's own graph.
std::vector<std::string> module_names(const GraphDef& def);

}  // namespace pinnace::torch_import
