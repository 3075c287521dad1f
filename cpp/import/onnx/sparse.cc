// Sparse tensors become dense ones at import: zeros, and the stored values at their places. Everything is checked
// before the dense tensor is allocated: a few bytes of a file can promise any size.
#include <algorithm>
#include <cstring>

#include "import/onnx/tensor.h"

namespace pinnace::onnx {
namespace {
template <class... Parts>
Status corrupt(const Parts&... parts) {
  return Status(Code::kCorruptFile, str_cat(parts...)).with_rule("O-16");
}

/// Place k of the values in the dense tensor: stored as one number, or as one for each dimension.
Result<int64_t> place(const int64_t* indices, int64_t k, bool linear, const TensorType& type, const std::string& what) {
  if (linear) {
    if (indices[k] < 0 || indices[k] >= type.elements()) {
      return corrupt(what, ": index ", indices[k], " of value ", k, " is outside ", to_string(type));
    }
    return indices[k];
  }
  int64_t at = 0;
  for (int d = 0; d < type.rank(); ++d) {
    const int64_t index = indices[k * type.rank() + d], size = type.shape[static_cast<size_t>(d)].size;
    if (index < 0 || index >= size) {
      return corrupt(what, ": index ", index, " of value ", k, " in dimension ", d, " is outside ", to_string(type));
    }
    at = at * size + index;
  }
  return at;
}
}  // namespace

Result<Tensor> read_sparse(const proto::SparseTensorProto& source, const std::string& what, ExternalData& external,
                           int64_t& budget) {
  PINNACE_ASSIGN(const TensorType type, type_of(source.values().data_type(), source.dims(), what));
  if (type.rank() == 0) return corrupt(what, " has no dimensions");
  const int bits = dtype_bits(type.dtype);
  if (bits % 8 != 0) {
    return unsupported(what, ": sparse tensors of ", dtype_name(type.dtype), ", which has less than a byte");
  }
  PINNACE_ASSIGN(const Tensor values, read_tensor(source.values(), what, external));
  PINNACE_ASSIGN(const Tensor indices, read_tensor(source.indices(), str_cat("indices of ", what), external));
  const int64_t count = values.type.elements();
  if (values.type.rank() != 1) return corrupt(what, ": its values are ", to_string(values.type), ", must be a vector");
  const bool linear = indices.type.rank() == 1;
  const bool fits = indices.type.dtype == DType::kI64 && !indices.type.shape.empty() &&
                    indices.type.shape[0] == Dim(count) &&
                    (linear || (indices.type.rank() == 2 && indices.type.shape[1] == Dim(type.rank())));
  if (!fits) {
    return corrupt(what, ": its indices are ", to_string(indices.type), ", must be int64[", count, "] or int64[", count,
                   ",", type.rank(), "]");
  }
  budget += kDensePerStored * (values.type.bytes() + indices.type.bytes());
  if (type.bytes() > budget) {
    return unsupported(what, " is sparse and has ", type.bytes(), " bytes as a dense tensor, at most ",
                       kSparseBytes >> 20, " MiB and ", kDensePerStored, " times what is stored are supported");
  }
  budget -= type.bytes();
  PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(static_cast<size_t>(type.bytes()), what));
  if (type.bytes()) std::memset(buffer.data(), 0, static_cast<size_t>(type.bytes()));
  const auto* from = reinterpret_cast<const int64_t*>(indices.data->data());
  const auto size = static_cast<size_t>(bits / 8);
  int64_t before = -1;
  for (int64_t k = 0; k < count; ++k) {
    PINNACE_ASSIGN(const int64_t at, place(from, k, linear, type, what));
    if (at <= before) return corrupt(what, ": the index of value ", k, " does not follow that before it");
    std::memcpy(buffer.data() + static_cast<size_t>(at) * size, values.data->data() + static_cast<size_t>(k) * size,
                size);
    before = at;
  }
  return Tensor{type, Constant::of(std::move(buffer))};
}

}  // namespace pinnace::onnx
