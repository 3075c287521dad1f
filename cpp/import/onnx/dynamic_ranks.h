// Dimensions whose size decides the rank of a value: a Squeeze without axes leaves out those of size 1, and one that
// the file leaves dynamic may be 1 or not. A value has one rank with us, so that one of the two is taken for the whole
// model.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "import/onnx/mapping.h"

namespace pinnace::onnx {

/// True if 1 is not in the symbol's range.
inline bool excludes_one(const Symbol& s) {
  return s.min > 1 || s.max < 1 || s.multiple_of > 1;
}

/// The axes that a Squeeze without axes of a value of this type leaves out: those of size 1. Dynamic dimensions of
/// inputs are kept: those without a range of the caller's get one that begins at 2, which is recorded in
/// Import::at_least_two. kConversion: a dynamic size is computed, or the caller's range has 1 and other sizes.
Result<std::vector<int64_t>> axes_of_size_one(SourceNode& node, const TensorType& type);

/// True if an output of `graph` has another rank than the file declares for it.
bool ranks_contradict(const GraphBuilder& builder, const proto::GraphProto& graph);

/// What a user should know of dimensions that are taken to be at least 2, or 1.
void note_at_least_two(const Import& import, std::vector<std::string>& notes);
void note_ones(std::span<const std::pair<std::string, std::string>> ones, std::vector<std::string>& notes);

}  // namespace pinnace::onnx
