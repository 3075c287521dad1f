// TensorProto to Constant: every way in which ONNX stores elements, checked against the tensor's shape first.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "import/onnx/external.h"
#include "onnx_model.pb.h"

namespace pinnace::onnx {
namespace proto = pinnace::onnx_proto;

/// More dimensions than any operator takes; numpy's limit.
inline constexpr int kMaxRank = 32;

/// ONNX's element type as ours; nothing for string and complex.
std::optional<DType> dtype_of(int32_t data_type);
/// "FLOAT8E4M3FN", or the number if ONNX does not know it either.
std::string data_type_text(int32_t data_type);

struct Tensor {
  TensorType type;
  ConstantPtr data;
};

/// The type that a tensor states. kUnsupported: an element type that pinnace lacks. kCorruptFile (rule O-11): more than
/// kMaxRank dimensions, negative ones, or more elements than memory can hold.
Result<TensorType> type_of(int32_t data_type, const google::protobuf::RepeatedField<int64_t>& dims,
                           const std::string& what);

/// The elements of `source`: a copy, or bytes of a mapped file beside the model. `what` names it in errors:
/// "initializer 'w'".
///
/// kUnsupported: an element type that pinnace lacks, segments. kCorruptFile (rule O-1x): the data do not have the
/// length that the shape asks for, numbers do not fit, external data lie outside the folder or the file. kFile:
/// external data cannot be read. Nothing is allocated before the lengths agree. A tensor that is read
/// again, as in a function that is called twice, has the same bytes.
Result<Tensor> read_tensor(const proto::TensorProto& source, const std::string& what, ExternalData& external);

/// How large the dense forms of a model's sparse tensors may be: so many bytes, and so many for each that is stored.
inline constexpr int64_t kSparseBytes = int64_t{32} << 20, kDensePerStored = 8;
/// A sparse tensor as a dense one. `budget` begins with kSparseBytes and is shared by all of a model.
///
/// As read_tensor; also kCorruptFile (rule O-16): indices outside the shape, not in ascending order or not as many as
/// values. kUnsupported: elements of less than a byte, a dense form beyond the budget.
Result<Tensor> read_sparse(const proto::SparseTensorProto& source, const std::string& what, ExternalData& external,
                           int64_t& budget);

}  // namespace pinnace::onnx
