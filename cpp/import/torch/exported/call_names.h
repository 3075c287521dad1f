// Names of a program's inputs and outputs as its author wrote them in Python, from the nests of arguments and results
// that an archive describes (torch's serialised TreeSpec).
#pragma once

#include <string>
#include <vector>

namespace pinnace::torch_import {

/// One name per leaf of the arguments, in order: "x" for an argument that is a tensor, "batch.image" for an entry of a
/// dict, a field of a dataclass or a named tuple, "states.0" for an item of a list or tuple, and any nest of these.
/// `argument_names` are those of forward(), for its positional arguments. An empty name is one that is not known or
/// longer than kMaxCallName. Empty if `in_spec` is none that torch writes.
std::vector<std::string> input_names(const std::string& in_spec, const std::vector<std::string>& argument_names);

/// One name per leaf of the results: "logits" for an entry or field, "past.0.key" within a nest. Empty for leaves that
/// have no names in Python, as a tensor that is returned alone or in a plain tuple has none.
std::vector<std::string> output_names(const std::string& out_spec);

inline constexpr size_t kMaxCallName = 200;

}  // namespace pinnace::torch_import
