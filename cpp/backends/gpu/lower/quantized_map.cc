// Functions of one and two quantised tensors as tables that the reference fills, exact by construction; concatenation,
// and casts that keep bytes.
#include <numeric>

#include "backends/gpu/lower/quantized.h"
#include "backends/gpu/lower/strided.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

constexpr int64_t kPairs = int64_t{256} * 256;

/// Runs of elements, or of words of images, through a table or as they are. Places in elements.
struct Runs {
  int64_t count = 0, run = 1, from_image = 0, to_image = 0, to = 0;
  bool rows = false, table = true;
};
void runs(NodeLowering& n, const Runs& r, TensorId x, TensorId table, TensorId y) {
  if (r.count == 0) return;
  n.step(KernelId::bytes_table, {r.rows ? 1 : 0, r.table ? 1 : 0},
         Push().i(r.count).i(r.run).i(r.from_image).i(0).i(r.to_image).i(r.to).i(byte_offset(n.out().dtype)),
         {x, table, y}, line_groups(r.count, 64), static_cast<double>(r.count));
}

/// Output 0 as a function of input `main` alone.
void function_of(NodeLowering& n, int main) {
  const NodeView view = n.view();
  const TensorId table = byte_constant(n, "table", 256, [view, main, made = n.out().dtype](std::span<uint8_t> to) {
    return reference_on_bytes(view, {&main, 1}, made, to);
  });
  const bool image = n.held_as_image(main) && n.in(main).rank() >= 3;
  Runs all;
  all.rows = !image;
  all.count = all.run = image ? image_shape(n.out()).vectors() : n.out().elements();
  const TensorId x = image ? n.image(main) : n.rows(main), y = image ? n.make_image() : n.make_rows();
  runs(n, all, x, table, y);
}

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

/// Strides at the end of six dimensions, 0 where an operand broadcasts.
void push_strides(Push& push, const Shape& shape) {
  std::array<int64_t, 6> strides{};
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i].size != 1) strides[6 - shape.size() + i] = stride;
    stride *= shape[i].size;
  }
  for (int64_t s : strides) push.i(s);
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

/// y, of output 0's size, = table[a][b] element by element on rows, each operand with its own strides.
void pair_step(NodeLowering& n, TensorId a, const Shape& a_shape, TensorId b, const Shape& b_shape, TensorId table,
               TensorId y) {
  const Shape& shape = n.out().shape;
  const int64_t count = n.out().elements();
  Push push;
  push.i(count);
  for (size_t i = 1; i < 6; ++i) push.i(i + shape.size() < 6 ? 1 : shape[i + shape.size() - 6].size);
  push_strides(push, a_shape);
  push_strides(push, b_shape);
  push.i(byte_offset(n.in(0).dtype));
  n.step(KernelId::bytes_pair_rows, {}, push, {a, b, table, y}, line_groups(count, 64), static_cast<double>(count));
}

Status pair_rows(NodeLowering& n) {
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  const TensorId a = n.rows(0), b = n.rows(1), table = pair_table(n, 0);
  pair_step(n, a, n.in(0).shape, b, n.in(1).shape, table, n.make_rows());
  return {};
}

/// The bytes of `from` that its 256 bytes become as `to`, as images hold them.
void rescale_bytes(const TensorType& from, const TensorType& to, std::span<uint8_t> bytes) {
  const int32_t offset = byte_offset(to.dtype);
  for (int32_t q = 0; q < 256; ++q) {
    const float real = dequantize(q - offset, scale_zero(from));
    bytes[static_cast<size_t>(q)] = static_cast<uint8_t>(quantize(real, scale_zero(to), int_range(to.dtype)) + offset);
  }
}

/// The largest or least of three inputs and more, one after the other: quantising keeps the order of numbers, so that
/// what is stored of the largest is the largest of what is stored.
Status extreme_of_many(NodeLowering& n, bool largest) {
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  TensorId made = n.rows(0);
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
    const TensorId b = n.rows(i), to = last ? n.make_rows() : n.make_scratch(y.elements(), y.dtype);
    pair_step(n, made, shape, b, own.shape, table, to);
    made = to;
    shape = y.shape;
  }
  return {};
}

}  // namespace

TensorId rescaling_table(NodeLowering& n, std::string_view what, const TensorType& from, const TensorType& to) {
  return byte_constant(n, what, 256, [from, to](std::span<uint8_t> bytes) {
    rescale_bytes(from, to, bytes);
    return Status();
  });
}

void rescale_rows(NodeLowering& n, TensorId x, const TensorType& from, int64_t count, TensorId y) {
  Runs r;
  r.rows = true;
  r.count = r.run = count;
  runs(n, r, x, rescaling_table(n, str_cat("scale ", to_string(from)), from, n.out()), y);
}

/// Their results are bools, which have no layout but rows.
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
  select_step(n, n.out().dtype, condition, sides[0], sides[1], n.out().shape, n.make_rows());
  return {};
}

Status lower_quantized_function(NodeLowering& n) {
  for (int i = 1; i < n.view().input_count(); ++i) {
    if (!n.has(i)) continue;
    if (!n.constant(i)) return n.refuse(Rule::kConstant, str_cat(n.view().input_name(i)));
    if (n.in(i).elements() != 1) return n.refuse(Rule::kAttribute, to_string(n.in(i)));
  }
  function_of(n, 0);
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
  const bool held = n.held_as_image(0) || n.held_as_image(1);
  for (int main : {0, 1}) {
    const TensorType &x = n.in(main), &side = n.in(1 - main);
    const bool whole = same_shape(side, x), pixel = !whole && pixel_of(side, x);
    if (!held || x.rank() < 3 || !same_shape(x, n.out()) || (!whole && !pixel)) continue;
    const ImageShape s = image_shape(n.out());
    const TensorId a = n.image(main), b = n.image(1 - main), table = pair_table(n, main), y = n.make_image();
    n.step(KernelId::bytes_pair, {pixel ? 1 : 0}, Push().i(s.vectors()).i(s.pixels).i(s.blocks()).i(side.shape[0].size),
           {a, b, table, y}, line_groups(s.vectors(), 64), static_cast<double>(s.vectors() * 4));
    return {};
  }
  return pair_rows(n);
}

Status lower_quantized_concat(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.out().rank()));
  const int inputs = n.view().input_count();
  bool images = axis == 1 && n.out().rank() >= 3, held = false;
  for (int i = 0; i < inputs; ++i) {
    images = images && (i + 1 == inputs || n.in(i).shape[1].size % 4 == 0);
    held |= n.held_as_image(i);
  }
  images = images && held;
  std::vector<TensorId> from;
  for (int i = 0; i < inputs; ++i) from.push_back(images ? n.image(i) : n.rows(i));
  const TensorId y = images ? n.make_image() : n.make_rows();
  const AxisView whole = view_axis(n.out().shape, axis);
  Runs r;
  r.rows = !images;
  r.to_image = images ? image_shape(n.out()).blocks() * image_shape(n.out()).pixels : whole.size * whole.inner;
  for (int i = 0; i < inputs; ++i) {
    const TensorType from_type = n.in(i), to_type = n.out();
    r.table = !same_quantization(from_type, to_type);
    r.run = images ? image_shape(from_type).blocks() * image_shape(from_type).pixels
                   : from_type.shape[static_cast<size_t>(axis)].size * whole.inner;
    r.from_image = r.run;
    r.count = r.run * (images ? image_shape(n.out()).N : whole.outer);
    TensorId table = from[static_cast<size_t>(i)];
    if (r.table) {
      table = rescaling_table(n, str_cat("scale ", i), from_type, to_type);
    }
    runs(n, r, from[static_cast<size_t>(i)], table, y);
    r.to += r.run;
  }
  return {};
}

/// Casts between a plain type and the same with scales keep bytes, and their layouts; others are those of integers.
Status lower_quantized_cast(NodeLowering& n) {
  if (n.in(0).dtype != n.out().dtype) return lower_cast(n);
  if (n.all().dry()) return {};
  if (n.constant(0)) n.rows(0);
  const LoweredValue& from = n.in_value(0);
  LoweredValue& to = n.all().value(n.out_id());
  to.rows = from.rows;
  to.image = from.image;
  return {};
}

}  // namespace pinnace::gpu
