// numpy arrays and tensors: element types both ways, arrays borrowed as inputs, bytes handed out as arrays.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pinnace/session.h>
#include <pinnace/tensor.h>

namespace pinnace::bindings {

/// numpy's type for an element type. bf16, floats of 8 bits and fewer and integers of 4 and 2 bits are those of the
/// ml_dtypes package; Unsupported where it is missing.
pybind11::dtype numpy_dtype(DType dtype);

/// An array as a dense tensor. The Tensor's memory is borrowed from `array`, or from `packed` for types of fewer than
/// 8 bits, which numpy keeps one to a byte.
struct BorrowedArray {
  pybind11::array array;
  std::vector<std::byte> packed;
  Tensor tensor;
};
/// Copies only what is not dense, aligned and in native byte order. InvalidArgument, with `what`, for element types
/// that pinnace has not. Moving the result keeps the memory.
BorrowedArray borrow_array(const pybind11::handle& object, const std::string& what);
/// The arrays of one run, in order. Of one that no run takes, by its type, the tensor has no memory.
std::vector<BorrowedArray> borrow_inputs(const Session& session, const pybind11::sequence& arrays);

/// A new array with these bytes; `type` is concrete.
pybind11::array array_of(const TensorType& type, std::span<const std::byte> bytes);

/// A tensor's bytes, copied without the GIL.
struct OwnedBytes {
  TensorType type;
  std::shared_ptr<std::byte[]> bytes;  ///< null: there was no memory for them
  size_t size = 0;
  static OwnedBytes copy_of(const Tensor& tensor);
};
/// An array of these very bytes, but of a copy for types of fewer than 8 bits. OutOfMemory where there are none.
pybind11::array array_of(const OwnedBytes& owned);

}  // namespace pinnace::bindings
