// What of referenced models nobody uses: a loop may carry values that neither it nor what comes after it looks at.
#pragma once

#include "nnapi/model.h"

namespace pinnace::nnapi {

/// For each value that a loop carries whether it matters: it is `used` behind the loop, the condition looks at it, or
/// another one that matters is made of it.
std::vector<bool> carried_that_matter(const Model& condition, const Model& body, std::vector<bool> used);

/// The model with these inputs and outputs alone, and the operations that make the outputs.
Model part_of(const Model& model, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs);

}  // namespace pinnace::nnapi
