// Nodes in front of a graph, see picture_nodes.h.
#include "convert/picture_nodes.h"

#include <algorithm>

#include "base/text.h"

namespace pinnace {
namespace {

int64_t calculated(std::string_view op, int64_t a, int64_t b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return a / b;
  return op == "mod" ? a % b : std::min(a, b);
}

}  // namespace

ValueId PictureNodes::add(std::string_view op, std::string_view label, std::vector<ValueId> inputs, Attrs attrs,
                          TensorType type) {
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  const std::string name = str_cat(base_, "/", label);
  const ValueId made = graph_.add_value(name, std::move(type));
  last_ = graph_.insert_node(count_++, std::string(op), 1, name, std::move(inputs), {made});
  last_->source.module = std::string(kPreprocessingModule);
  for (auto& [key, value] : attrs) last_->set_attr(key, std::move(value));
  return made;
}

Result<ValueId> PictureNodes::ints(std::vector<int64_t> values) {
  return graph_.add_constant_of<int64_t>(str_cat(base_, "/sizes"), DType::kI64,
                                         {Dim(static_cast<int64_t>(values.size()))}, values);
}

Result<ValueId> PictureNodes::floats(Shape shape, std::span<const float> values) {
  return graph_.add_constant_of<float>(str_cat(base_, "/numbers"), DType::kF32, std::move(shape), values);
}

Result<ValueId> PictureNodes::zero_byte() {
  const uint8_t zero[] = {0};
  return graph_.add_constant_of<uint8_t>(str_cat(base_, "/zero"), DType::kU8, {}, zero);
}

Result<PictureSize> PictureNodes::size_of(ValueId id, size_t d) {
  const Dim dim = graph_.value(id).type.shape[d];
  if (dim.known()) return PictureSize::of(dim.size);
  PINNACE_ASSIGN(const ValueId at, ints({static_cast<int64_t>(d)}));
  const ValueId shape = add("shape", "shape", {id});
  return PictureSize{-1, add("gather", "size", {shape, at}, {{"axis", int64_t{0}}})};
}

Result<PictureSize> PictureNodes::calculate(std::string_view op, PictureSize a, PictureSize b) {
  if (a.is_known() && b.is_known()) return PictureSize::of(calculated(op, a.known, b.known));
  PINNACE_ASSIGN(const ValueId left, vector(std::span(&a, 1)));
  PINNACE_ASSIGN(const ValueId right, vector(std::span(&b, 1)));
  return PictureSize{-1, add(op, "size", {left, right})};
}

Result<PictureSize> PictureNodes::times(PictureSize a, int64_t by, PictureSize divisor) {
  PINNACE_ASSIGN(const PictureSize product, calculate("mul", a, by));
  return calculate("div", product, divisor);
}

Result<PictureSize> PictureNodes::margin(PictureSize whole, PictureSize part) {
  PINNACE_ASSIGN(const PictureSize rest, calculate("sub", whole, part));
  PINNACE_ASSIGN(PictureSize half, calculate("div", rest, 2));
  PINNACE_ASSIGN(half, calculate("mod", half, 2));
  PINNACE_ASSIGN(half, calculate("add", rest, half));
  return calculate("div", half, 2);
}

Result<PictureBox> PictureNodes::middle(PictureSize height, PictureSize width, PictureSize box_height,
                                        PictureSize box_width) {
  PINNACE_ASSIGN(const PictureSize top, margin(height, box_height));
  PINNACE_ASSIGN(const PictureSize left, margin(width, box_width));
  return PictureBox{top, left, box_height, box_width};
}

Result<ValueId> PictureNodes::cut(std::string_view label, ValueId x, int64_t row_axis, const PictureBox& box) {
  PINNACE_ASSIGN(const PictureSize bottom, calculate("add", box.top, box.height));
  PINNACE_ASSIGN(const PictureSize right, calculate("add", box.left, box.width));
  const PictureSize from[] = {box.top, box.left}, to[] = {bottom, right};
  return slice(label, x, {row_axis, row_axis + 1}, from, to);
}

Result<ValueId> PictureNodes::vector(std::span<const PictureSize> sizes) {
  std::vector<ValueId> parts;
  std::vector<int64_t> numbers;
  const bool all = std::all_of(sizes.begin(), sizes.end(), [](const PictureSize& s) { return s.is_known(); });
  for (const PictureSize& s : sizes) numbers.push_back(s.known);
  if (all) return ints(std::move(numbers));
  for (const PictureSize& s : sizes) {
    ValueId part = s.value;
    if (s.is_known()) {
      PINNACE_ASSIGN(part, ints({s.known}));
    }
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts[0] : add("concat", "sizes", std::move(parts), {{"axis", int64_t{0}}});
}

Result<ValueId> PictureNodes::slice(std::string_view label, ValueId x, std::vector<int64_t> axes,
                                    std::span<const PictureSize> starts, std::span<const PictureSize> ends,
                                    int64_t step) {
  const size_t count = axes.size();
  PINNACE_ASSIGN(const ValueId first, vector(starts));
  PINNACE_ASSIGN(const ValueId last, vector(ends));
  PINNACE_ASSIGN(const ValueId which, ints(std::move(axes)));
  ValueId steps = kNoValue;
  if (step != 1) {
    PINNACE_ASSIGN(steps, ints(std::vector<int64_t>(count, step)));
  }
  return add("slice", label, {x, first, last, which, steps});
}

Result<ValueId> PictureNodes::reshape(std::string_view label, ValueId x, std::span<const PictureSize> sizes) {
  PINNACE_ASSIGN(const ValueId shape, vector(sizes));
  return add("reshape", label, {x, shape});
}

Result<ValueId> PictureNodes::to_float(std::string_view label, ValueId bytes, float scale) {
  PINNACE_ASSIGN(const ValueId by, floats({}, std::span(&scale, 1)));
  PINNACE_ASSIGN(const ValueId zero, zero_byte());
  return add("dequantize_linear", label, {bytes, by, zero});
}

Result<ValueId> PictureNodes::to_bytes(std::string_view label, ValueId numbers) {
  const float one = 1;
  PINNACE_ASSIGN(const ValueId by, floats({}, std::span(&one, 1)));
  PINNACE_ASSIGN(const ValueId zero, zero_byte());
  return add("quantize_linear", label, {numbers, by, zero});
}

}  // namespace pinnace
