// Rules F-12, F-17 and F-19 to F-33: what is referred to by index, types, and the places of constants.
#include "program/decode_types.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace pinnace {

RootLists::RootLists(const FileView& file, const Container& container, const format::Model& model,
                     std::shared_ptr<const void> owner)
    : file_(file),
      container_(container),
      model_(model),
      owner_(std::move(owner)),
      weights_(container.bytes(container.only(SectionKind::kWeights))) {}

Status RootLists::read() {
  PINNACE_TRY(read_strings());
  for (uint32_t i = 0; i < list_size(model_.operators()); ++i) {
    const format::Operator& op = *model_.operators()->Get(i);
    PINNACE_ASSIGN(std::string name, string(op.name(), &op, "the name of an operator"));
    if (name.empty() || op.version() < 1) {
      return file_.corrupt(file_.offset_of(&op), "F-25", "operator ", i, " '", name, "' is of version ", op.version(),
                           "; names are not empty and versions start at 1");
    }
    operators.push_back({std::move(name), op.version(), op.application()});
  }
  PINNACE_TRY(read_symbols());
  return read_quantizations();
}

Status RootLists::read_strings() {
  // Strings cannot overlap in a file that a writer made, so their sum is bounded; without that bound, checking the
  // encoding of one long string through many references would take quadratic time.
  const auto& strings = *model_.strings();
  uint64_t left = file_.bytes.size();
  strings_.reserve(strings.size());
  for (uint32_t i = 0; i < strings.size(); ++i) {
    const std::string_view text(strings.Get(i)->c_str(), strings.Get(i)->size());
    if (text.size() > left) {
      return file_.corrupt(file_.offset_of(strings.Get(i)), "F-19", "string ", i, " of ", text.size(),
                           " bytes overlaps others: all together are longer than the file");
    }
    left -= text.size();
    if (!is_utf8(text)) return file_.corrupt(file_.offset_of(strings.Get(i)), "F-20", "string ", i, " is not UTF-8");
    strings_.push_back(text);
  }
  return {};
}

Status RootLists::read_symbols() {
  for (uint32_t i = 0; i < list_size(model_.symbols()); ++i) {
    const format::Symbol& s = *model_.symbols()->Get(i);
    PINNACE_ASSIGN(std::string name, string(s.name(), &s, "the name of a symbol"));
    if (s.min() < 0 || s.max() < s.min() || s.multiple_of() < 1) {
      return file_.corrupt(file_.offset_of(&s), "F-26", "symbol ", i, " '", name, "' has range [", s.min(), ", ",
                           s.max(), "] in steps of ", s.multiple_of(), "; 0 <= min <= max and steps >= 1 must hold");
    }
    symbols.push_back({std::move(name), s.min(), s.max(), s.multiple_of()});
  }
  return {};
}

Status RootLists::read_quantizations() {
  for (uint32_t i = 0; i < list_size(model_.quantizations()); ++i) {
    const format::Quantization& q = *model_.quantizations()->Get(i);
    PINNACE_ASSIGN(const auto scales, list(q.scales(), "the scales of a quantisation"));
    PINNACE_ASSIGN(const auto zeros, list(q.zero_points(), "the zero points of a quantisation"));
    const auto fail = [&](const auto&... parts) {
      return file_.corrupt(file_.offset_of(&q), "F-27", "quantisation ", i, " ", parts...);
    };
    if (scales.empty() || zeros.size() != scales.size()) {
      return fail("has ", scales.size(), " scales and ", zeros.size(), " zero points, must have one pair or more");
    }
    if (q.axis() < -1 || q.block() < 0 || (q.axis() < 0 && (scales.size() != 1 || q.block() != 0))) {
      return fail("has ", scales.size(), " scales for axis ", q.axis(), " and block ", q.block(),
                  "; without an axis (-1) there is one scale and no block");
    }
    for (float scale : scales) {
      if (!std::isfinite(scale) || scale < 0) return fail("has scale ", scale, ", must be finite and not negative");
    }
    quantizations_.push_back(std::make_shared<const Quantization>(
        Quantization{{scales.begin(), scales.end()}, {zeros.begin(), zeros.end()}, q.axis(), q.block()}));
  }
  return {};
}

Result<std::string> RootLists::string(uint32_t index, const void* place, std::string_view what) const {
  if (index >= strings_.size()) {
    return file_.corrupt(file_.offset_of(place), "F-21", what, " is string ", index, ", the file has ",
                         strings_.size());
  }
  return std::string(strings_[index]);
}

Result<Shape> RootLists::shape(const format::Value& value, std::string_view label) const {
  PINNACE_ASSIGN(const auto sizes, list(value.shape(), "a shape"));
  PINNACE_ASSIGN(const auto bounds, list(value.shape_max(), "the bounds of a shape"));
  const auto fail = [&](std::string_view rule, const auto&... parts) {
    return file_.corrupt(file_.offset_of(&value), rule, label, " ", parts...);
  };
  if (!bounds.empty() && bounds.size() != sizes.size()) {
    return fail("F-23", "has ", bounds.size(), " bounds for ", sizes.size(), " dimensions");
  }
  Shape shape(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim& d = shape[i];
    if (sizes[i] >= 0) {
      d.size = sizes[i];
    } else if (sizes[i] < -1) {
      const auto symbol = -2 - (sizes[i] < INT64_MIN + 2 ? INT64_MIN + 2 : sizes[i]);
      if (symbol < 0 || static_cast<uint64_t>(symbol) >= symbols.size()) {
        return fail("F-24", "has symbol ", symbol, " as dimension ", i, ", the file has ", symbols.size(), " symbols");
      }
      d.symbol = static_cast<int32_t>(symbol);
    }
    if (bounds.empty() || bounds[i] == Dim::kUnknown) continue;
    if (bounds[i] < 0 || d.known()) {
      return fail("F-23", "has bound ", bounds[i], " on dimension ", i,
                  "; bounds are for unknown sizes and not negative");
    }
    d.max = bounds[i];
  }
  return shape;
}

Result<TensorType> RootLists::type(const format::Value& value, std::string_view label) const {
  const uint64_t at = file_.offset_of(&value);
  if (value.dtype() >= kDTypeCount) {
    return file_.corrupt(at, "F-22", label, " has element type ", value.dtype(), ", types are 0 to ", kDTypeCount - 1);
  }
  TensorType type;
  type.dtype = static_cast<DType>(value.dtype());
  PINNACE_ASSIGN(type.shape, shape(value, label));
  // Sizes are multiplied without checks from here on; 16 leaves room for sums of a few tensors. Sizes of 0 count as 1,
  // so that no order of multiplication overflows.
  int64_t bits = dtype_bits(type.dtype);
  for (const Dim& d : type.shape) {
    const int64_t size = std::max<int64_t>(d.known() ? d.size : 1, 1);
    if (bits > (INT64_MAX >> 4) / size) {
      return file_.corrupt(at, "F-28", label, " is larger than memory can be: ", to_string(type, symbols));
    }
    bits *= size;
  }
  if (value.quantization() == -1) return type;
  if (value.quantization() < 0 || static_cast<size_t>(value.quantization()) >= quantizations_.size()) {
    return file_.corrupt(at, "F-29", label, " has quantisation ", value.quantization(), ", the file has ",
                         quantizations_.size());
  }
  type.quantization = quantizations_[static_cast<size_t>(value.quantization())];
  PINNACE_TRY(check_quantization(type, &value, label));
  return type;
}

Status RootLists::check_quantization(const TensorType& type, const void* place, std::string_view label) const {
  const Quantization& q = *type.quantization;
  const auto fail = [&](const auto&... parts) {
    return file_.corrupt(file_.offset_of(place), "F-30", label, " ", parts...);
  };
  if (type.dtype <= DType::kF64 || type.dtype == DType::kBool || type.dtype > DType::kU4) {
    return fail("is quantised and of type ", dtype_name(type.dtype), "; only integers are, of 4 bits or more");
  }
  if (q.axis < 0) return {};
  if (q.axis >= type.rank()) return fail("has scales along axis ", q.axis, " and rank ", type.rank());
  int64_t wanted = 1;
  for (int i = 0; i < type.rank(); ++i) {
    const Dim& d = type.shape[static_cast<size_t>(i)];
    if (i != q.axis && q.block == 0) continue;
    if (!d.known()) return {};  // the number of scales cannot be wrong before the size is known
    wanted *= i == q.axis && q.block > 0 ? d.size / q.block + (d.size % q.block != 0) : d.size;
  }
  if (static_cast<uint64_t>(wanted) != q.scales.size()) {
    return fail("has ", q.scales.size(), " scales along axis ", q.axis, ", its shape needs ", wanted);
  }
  return {};
}

Result<ConstantPtr> RootLists::constant(const format::Span& span, uint64_t hash, const TensorType& type,
                                        std::string_view label) const {
  const uint64_t at = file_.offset_of(&span);
  if (span.offset() > weights_.size() || span.bytes() > weights_.size() - span.offset()) {
    const uint64_t end = span.offset() > UINT64_MAX - span.bytes() ? UINT64_MAX : span.offset() + span.bytes();
    return file_.corrupt(at, "F-12", label, " spans [", span.offset(), ", ", end, ") of section 'weights', which has ",
                         weights_.size(), " bytes");
  }
  if (span.offset() % kAlignment) {
    return file_.corrupt(at, "F-31", label, " starts at ", span.offset(), " of section 'weights', not a multiple of ",
                         kAlignment);
  }
  if (!type.concrete() || static_cast<uint64_t>(type.bytes()) != span.bytes()) {
    return file_.corrupt(at, "F-32", label, " has ", span.bytes(), " bytes stored, its type is ",
                         to_string(type, symbols));
  }
  const std::byte* data = weights_.data() + span.offset();
  if (type.dtype == DType::kBool) {
    const auto* bad = std::find_if(data, data + span.bytes(), [](std::byte b) { return b > std::byte{1}; });
    if (bad != data + span.bytes()) {
      return file_.corrupt(file_.offset_of(bad), "F-33", label, " is bool and holds ", static_cast<int>(*bad),
                           ", must be 0 or 1");
    }
  }
  const std::span<const std::byte> bytes(data, span.bytes());
  unhashed_ |= hash == 0 && !bytes.empty();
  const bool unchecked = container_.verify == Verify::kStructure || hash == 0;
  auto stored = unchecked ? std::make_unique<const StoredBytes>(container_.stored, bytes)
                          : std::make_unique<const StoredBytes>(container_.stored, bytes, hash, "a constant", "F-50");
  // The others wait for their first reader: many values may lie in the same bytes, and nobody may read them.
  if (bytes.size() <= kCheckedAtOnce) PINNACE_TRY(stored->check());
  return std::make_shared<const Constant>(owner_, std::move(stored));
}

}  // namespace pinnace
