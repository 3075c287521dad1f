// Products of batches of matrices: BATCH_MATMUL from feature level 6 on. Below: each pair by FULLY_CONNECTED, its
// matrices cut out by STRIDED_SLICE (feature level 2), results put together: the same sums, exact.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/shape.h"
#include "backends/nnapi/steps/weights.h"

namespace pinnace::nnapi_client {
namespace {
/// Beyond this many products a model of parts costs more than it brings.
constexpr uint32_t kMostProducts = 128;

/// Matrix `i` of [batch, rows, columns].
Result<OperandId> matrix(NodeLowering& n, OperandId all, uint32_t i) {
  const std::vector<uint32_t> d = n.operand(all).dims;
  const OperandId part = n.temp(all, {d[1], d[2]});
  const auto at = static_cast<int32_t>(i);
  const int32_t begin[] = {at, 0, 0}, end[] = {at + 1, static_cast<int32_t>(d[1]), static_cast<int32_t>(d[2])};
  const int32_t ones[] = {1, 1, 1};
  PINNACE_TRY(n.add(Op::STRIDED_SLICE,
                    {all, n.ints(begin), n.ints(end), n.ints(ones), n.scalar(0), n.scalar(0), n.scalar(1)}, part));
  return part;
}
}  // namespace

Status batch_mat_mul(NodeLowering& n, OperandId a, OperandId b, OperandId y) {
  const std::vector<uint32_t> da = n.operand(a).dims, db = n.operand(b).dims;
  if (n.feature_level() >= 6 && da.size() <= 4) return n.add(Op::BATCH_MATMUL, {a, b, n.flag(false), n.flag(false)}, y);
  uint32_t batch = 1;
  for (size_t i = 0; i + 2 < da.size(); ++i) batch *= da[i];
  if (batch > kMostProducts)
    return n.refuse(Rule::kFeatureLevel, str_cat(batch, " products; BATCH_MATMUL needs feature level 6"));
  n.rewritten("a product for each of a batch");
  const uint32_t M = da[da.size() - 2], K = da.back(), N = db.back();
  const int32_t turn[] = {0, 2, 1};
  PINNACE_ASSIGN(const OperandId left, reshaped(n, a, {batch, M, K}));
  PINNACE_ASSIGN(const OperandId right, reshaped(n, b, {batch, K, N}));
  PINNACE_ASSIGN(const OperandId turned, transposed(n, right, turn));
  std::vector<OperandId> parts;
  for (uint32_t i = 0; i < batch; ++i) {
    PINNACE_ASSIGN(const OperandId x, matrix(n, left, i));
    PINNACE_ASSIGN(const OperandId w, matrix(n, turned, i));
    PINNACE_ASSIGN(const OperandId zeros, bias_operand(n, -1, x, w, N));
    parts.push_back(n.temp(y, {M, N}));
    PINNACE_TRY(n.add(Op::FULLY_CONNECTED, {x, w, zeros, n.scalar(0)}, parts.back()));
  }
  if (parts.size() == 1) return reshape_into(n, parts[0], y);
  parts.push_back(n.scalar(0));
  const OperandId whole = n.temp(y, {batch * M, N});
  PINNACE_TRY(n.add(Op::CONCATENATION, std::move(parts), whole));
  return reshape_into(n, whole, y);
}

}  // namespace pinnace::nnapi_client
