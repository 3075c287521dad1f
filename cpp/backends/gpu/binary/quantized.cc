// Functions of two quantised tensors as tables that the reference fills, exact by construction.
#include <numeric>

#include "backends/gpu/binary/params.h"
#include "backends/gpu/quantize/int8.h"
#include "backends/gpu/strided.h"
#include "backends/gpu/unary/int8_table.h"

namespace pinnace::gpu {
namespace {

constexpr int64_t kPairs = int64_t{256} * 256;

bool same_shape(const TensorType& a, const TensorType& b) {
  return a.rank() == b.rank() && std::equal(a.shape.begin(), a.shape.end(), b.shape.begin());
}

/// [1 or N, C, 1, ...] beside x [N, C, ...] of the same rank.
bool pixel_of(const TensorType& side, const TensorType& x) {
  if (side.rank() != x.rank() || x.rank() < 3) return false;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const int64_t size = side.shape[i].size;
    if (i == 1 ? size != x.shape[i].size : size != 1 && (i > 0 || size != x.shape[0].size)) return false;
  }
  return true;
}

/// The table by [main][other].
TensorId pair_table(NodeLowering& n, int main) {
  const NodeView view = n.view();
  return byte_constant(n, "pairs", kPairs, [view, main, made = n.out().dtype](std::span<uint8_t> to) {
    const int operands[2] = {main, 1 - main};
    if (main == 0) return reference_on_bytes(view, operands, made, to);
    PINNACE_ASSIGN(auto pairs, Scratch<uint8_t>::allocate(kPairs, "a table"));
    constexpr int kInOrder[2] = {0, 1};
    PINNACE_TRY(reference_on_bytes(view, kInOrder, made, pairs.span()));
    for (size_t i = 0; i < static_cast<size_t>(kPairs); ++i) to[i % 256 * 256 + i / 256] = pairs.data()[i];
    return Status();
  });
}

/// y, of output 0's size, = table[a][b] element by element on dense tensors, each operand with its own strides.
void pair_step(NodeLowering& n, TensorId a, const Shape& a_shape, TensorId b, const Shape& b_shape, TensorId table,
               TensorId y) {
  const Shape& shape = n.out().shape;
  const int64_t count = n.out().elements();
  auto params = strided_params<Int8PairDenseParams>(shape);
  params.a = push_strides(broadcast_strides(a_shape));
  params.b = push_strides(broadcast_strides(b_shape));
  params.offset = byte_offset(n.in(0).dtype);
  n.step(KernelId::int8_pair_dense, params, {a, b, table, y}, line_groups(count, 64), static_cast<double>(count));
}

Status pair_rows(NodeLowering& n) {
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  const TensorId a = n.dense(0), b = n.dense(1), table = pair_table(n, 0);
  pair_step(n, a, n.in(0).shape, b, n.in(1).shape, table, n.make_dense());
  return {};
}

/// The largest or least of three inputs and more, one after the other: quantising keeps the order of numbers, so that
/// what is stored of the largest is the largest of what is stored.
Status extreme_of_many(NodeLowering& n, bool largest) {
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  TensorId made = n.dense(0);
  Shape shape = n.in(0).shape;
  for (int i = 1; i < n.view().input_count(); ++i) {
    const TensorType first = n.in(0), own = n.in(i), y = n.out();
    const TensorId table = byte_constant(n, str_cat("pairs ", i), kPairs, [=](std::span<uint8_t> to) {
      std::array<uint8_t, 256> before, beside;
      if (i == 1) {
        rescale_bytes(first, y, before);
      } else {
        std::iota(before.begin(), before.end(), uint8_t{0});
      }
      rescale_bytes(own, y, beside);
      for (size_t k = 0; k < static_cast<size_t>(kPairs); ++k) {
        const uint8_t a = before[k / 256], b = beside[k % 256];
        to[k] = largest ? std::max(a, b) : std::min(a, b);
      }
      return Status();
    });
    const bool last = i + 1 == n.view().input_count();
    const TensorId b = n.dense(i), to = last ? n.make_dense() : n.make_scratch(y.elements(), y.dtype);
    pair_step(n, made, shape, b, own.shape, table, to);
    made = to;
    shape = y.shape;
  }
  return {};
}

}  // namespace

/// Their results are bools, which are dense.
Status lower_quantized_compare(NodeLowering& n) {
  return pair_rows(n);
}

Status lower_quantized_where(NodeLowering& n) {
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  Operand sides[2];
  for (int i : {1, 2}) {
    sides[i - 1] = operand(n, i);
    if (keeps_bytes(n.in(i), n.out())) continue;
    const TensorId made = n.make_scratch(n.in(i).elements(), n.out().dtype);
    rescale_rows(n, sides[i - 1].tensor, n.in(i), n.in(i).elements(), made);
    sides[i - 1].tensor = made;
  }
  const Operand condition = operand(n, 0);
  select_step(n, n.out().dtype, condition, sides[0], sides[1], n.out().shape, n.make_dense());
  return {};
}

Status lower_quantized_pair(NodeLowering& n) {
  if (n.view().input_count() == 1) return lower_quantized_function(n);
  if (n.view().input_count() > 2) return extreme_of_many(n, n.node().op == "max");
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  for (int main : {0, 1}) {
    if (n.constant(1 - main) && n.in(1 - main).elements() == 1 && same_shape(n.in(main), n.out())) {
      function_of(n, main);
      return {};
    }
  }
  const bool held = n.held_as_nc4hw4(0) || n.held_as_nc4hw4(1);
  for (int main : {0, 1}) {
    const TensorType &x = n.in(main), &side = n.in(1 - main);
    const bool whole = same_shape(side, x), pixel = !whole && pixel_of(side, x);
    if (!held || x.rank() < 3 || !same_shape(x, n.out()) || (!whole && !pixel)) continue;
    const ImageShape s = image_shape(n.out());
    const TensorId a = n.nc4hw4(main), b = n.nc4hw4(1 - main), table = pair_table(n, main), y = n.make_nc4hw4();
    n.step(
        KernelId::int8_pair, Int8PairConstants{.CHANNEL = pixel},
        Int8PairParams{.count = s.vectors(), .pixels = s.pixels, .blocks = s.blocks(), .b_images = side.shape[0].size},
        {a, b, table, y}, line_groups(s.vectors(), 64), static_cast<double>(s.vectors() * 4));
    return {};
  }
  return pair_rows(n);
}

}  // namespace pinnace::gpu
