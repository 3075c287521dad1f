// CustomOp: an operator of the application, beside the built-in ones.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <pinnace/tensor.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// Attributes of a node as text: numbers and lists as the graph's text form writes them.
using CustomAttributes = std::vector<std::pair<std::string, std::string>>;

/// `name` is what the source model calls it, "mylib.scale" or "com.example.Scale"; it may not be a built-in name. Both
/// functions must be pure and safe to call from any thread.
struct CustomOp {
  std::string name;
  int outputs = 1;
  /// Types of the outputs from those of the inputs. Sizes of inputs may be unknown (Dim::known()). What becomes an
  /// output of the program must be as the program declares it: else runs give kInvalidArgument.
  std::function<Status(std::span<const TensorType> inputs, const CustomAttributes& attributes,
                       std::span<TensorType> outputs)>
      shape;
  /// Computes all outputs; tensors are dense host memory with concrete types.
  std::function<Status(std::span<const Tensor> inputs, const CustomAttributes& attributes,
                       std::span<const Tensor> outputs)>
      reference;
};

}  // namespace pinnace
#pragma GCC visibility pop
