// Pictures as they enter, see picture_source.h.
#include "convert/picture_source.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace pinnace {

using Size = PictureSize;

Dim dynamic_dim(Graph& graph, std::string name, int64_t least, int64_t multiple) {
  const auto taken = [&](const Symbol& s) { return s.name == name; };
  while (std::any_of(graph.symbols.begin(), graph.symbols.end(), taken)) name += "_";
  graph.symbols.push_back({std::move(name), least, Symbol::kUnbounded, multiple});
  return Dim::of_symbol(static_cast<int32_t>(graph.symbols.size() - 1));
}

Result<ValueId> PictureSource::input(std::string_view suffix, Shape shape, std::string what) {
  const std::string name = how_.name + std::string(suffix);
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    if (i != place_ && graph_.value(graph_.inputs[i]).name == name) {
      return invalid("preprocessing of '", how_.name, "': another input has the name '", name, "': give another");
    }
  }
  for (Value& value : graph_.values) {  // an inner value, or the input that becomes one, makes room
    if (value.name != name) continue;
    std::string other = name + ".prepared";
    while (graph_.has_value_name(other)) other += "_";
    value.name = std::move(other);
    break;
  }
  const ValueId id = graph_.add_value(name, {DType::kU8, std::move(shape), nullptr});
  inputs_.push_back({id, std::move(what)});
  return id;
}

std::string PictureSource::sides_text() const {
  const auto text = [&](const Dim& d) { return d.known() ? str_cat(d.size) : std::string("any"); };
  return str_cat(text(sides_[0]), " x ", text(sides_[1]), " pixels");
}

Result<ValueId> PictureSource::rows_of(std::string_view suffix, std::string what, const Dim& rows, const Dim& used,
                                       int64_t stride) {
  const int64_t row = stride == Preprocessing::kDense ? used.size : stride;
  const std::string label = suffix.empty() ? std::string("rows") : str_cat(suffix.substr(1), "_rows");
  if (!how_.cut_last_row) {
    const std::string dim = suffix.empty() ? "row_stride" : str_cat(suffix.substr(1), ".row_stride");
    const Dim columns = stride == Preprocessing::kDense  ? used
                        : stride == Preprocessing::kOpen ? open(dim, used.size)
                                                         : Dim(stride);
    what += stride == Preprocessing::kDense ? ", rows without gaps" : ", [rows, bytes from row to row]";
    PINNACE_ASSIGN(const ValueId plane, input(suffix, {rows, columns}, std::move(what)));
    if (columns == used) return plane;
    const Size zero = Size::of(0), end = Size::of(used.size);
    return nodes_.slice(label, plane, {1}, {&zero, 1}, {&end, 1});
  }
  // All rows but the last, each with its gap, then the last one without.
  what += ", its bytes up to the last pixel";
  const int64_t whole = rows.size - 1;
  Dim bytes = Dim(whole * row + used.size);
  if (whole == 0) bytes = used;
  if (whole > 0 && stride == Preprocessing::kOpen) {
    bytes = open(suffix.empty() ? "bytes" : str_cat(suffix.substr(1), ".bytes"), rows.size * used.size);
  }
  PINNACE_ASSIGN(const ValueId plane, input(suffix, {bytes}, std::move(what)));
  PINNACE_ASSIGN(const Size all, nodes_.size_of(plane, 0));
  PINNACE_ASSIGN(const Size before, nodes_.calculate("sub", all, used.size));
  const Size zero = Size::of(0), end = Size::of(used.size);
  const Size last_row[] = {Size::of(1), end};
  PINNACE_ASSIGN(ValueId last, nodes_.slice(str_cat(label, "_last"), plane, {0}, {&before, 1}, {&all, 1}));
  PINNACE_ASSIGN(last, nodes_.reshape(str_cat(label, "_last"), last, last_row));
  if (whole == 0) return last;
  PINNACE_ASSIGN(const Size pitch, nodes_.calculate("div", before, whole));
  const Size shape[] = {Size::of(whole), pitch};
  PINNACE_ASSIGN(ValueId first, nodes_.slice(str_cat(label, "_whole"), plane, {0}, {&zero, 1}, {&before, 1}));
  PINNACE_ASSIGN(first, nodes_.reshape(str_cat(label, "_whole"), first, shape));
  PINNACE_ASSIGN(first, nodes_.slice(str_cat(label, "_pixels"), first, {1}, {&zero, 1}, {&end, 1}));
  return nodes_.add("concat", label, {first, last}, {{"axis", int64_t{0}}});
}

Status PictureSource::set_sides(Picture& p, ValueId plane) {
  if (sides_[0].known()) {
    p.height = Size::of(sides_[0].size);
  } else {
    PINNACE_ASSIGN(p.height, nodes_.size_of(plane, 0));
  }
  if (sides_[1].known()) {
    p.width = Size::of(sides_[1].size);
  } else {
    PINNACE_ASSIGN(p.width, nodes_.size_of(plane, 1));
  }
  return {};
}

Result<PictureBox> PictureSource::box_of(Size height, Size width) {
  if (!how_.crop_box.empty()) {
    const auto at = [&](size_t i) { return Size::of(how_.crop_box[i]); };
    return PictureBox{at(0), at(1), at(2), at(3)};
  }
  if (!how_.crop_size.empty()) {
    return nodes_.middle(height, width, Size::of(how_.crop_size[0]), Size::of(how_.crop_size[1]));
  }
  if (how_.crop_to_aspect) {
    PINNACE_ASSIGN(Size high, nodes_.times(width, how_.size[0], Size::of(how_.size[1])));
    PINNACE_ASSIGN(Size wide, nodes_.times(height, how_.size[1], Size::of(how_.size[0])));
    PINNACE_ASSIGN(high, nodes_.calculate("min", height, high));
    PINNACE_ASSIGN(wide, nodes_.calculate("min", width, wide));
    return nodes_.middle(height, width, high, wide);
  }
  PINNACE_ASSIGN(const Size high, nodes_.times(height, crop_units(how_), Size::of(kCropUnit)));
  PINNACE_ASSIGN(const Size wide, nodes_.times(width, crop_units(how_), Size::of(kCropUnit)));
  return nodes_.middle(height, width, high, wide);
}

Result<Picture> PictureSource::from_pixels() {
  const int64_t channels = form_.channels;
  Picture p{kNoValue, form_.order, {}, {}, how_.input_layout == "nhwc"};
  const std::string what = str_cat(form_.name, " bytes of a picture of ", sides_text());
  if (how_.row_stride != Preprocessing::kDense || how_.cut_last_row) {
    PINNACE_ASSIGN(const ValueId rows, rows_of("", what, sides_[0], Dim(sides_[1].size * channels), how_.row_stride));
    PINNACE_TRY(set_sides(p, inputs_[0].id));
    const Size shape[] = {Size::of(1), p.height, p.width, Size::of(channels)};
    PINNACE_ASSIGN(p.id, nodes_.reshape("pixels", rows, shape));
  } else {
    Shape shape = {sides_[0], sides_[1]};
    shape.insert(p.channels_last ? shape.end() : shape.begin(), Dim(channels));
    if (batch_) shape.insert(shape.begin(), *batch_);
    PINNACE_ASSIGN(p.id, input("", shape, str_cat(what, ", ", how_.input_layout)));
    const size_t row = (batch_ ? 1 : 0) + (p.channels_last ? 0 : 1);
    PINNACE_ASSIGN(p.height, nodes_.size_of(p.id, row));
    PINNACE_ASSIGN(p.width, nodes_.size_of(p.id, row + 1));
    if (!batch_) {
      PINNACE_ASSIGN(const ValueId axis, nodes_.ints({0}));
      p.id = nodes_.add("unsqueeze", "picture", {p.id, axis});
    }
  }
  if (!cuts(how_)) return p;
  PINNACE_ASSIGN(const PictureBox box, box_of(p.height, p.width));
  PINNACE_ASSIGN(p.id, nodes_.cut("crop", p.id, p.row_axis(), box));
  p.height = box.height, p.width = box.width;
  return p;
}

Result<Picture> PictureSource::from_planes() {
  const std::string of = str_cat(" plane of a picture (", form_.name, ") of ", sides_text());
  PINNACE_ASSIGN(ValueId luma, rows_of(".y", str_cat("luma", of), sides_[0], sides_[1], how_.row_stride));
  const bool grey = how_.output == "grey";
  Picture p{kNoValue, grey ? "grey" : "rgb", {}, {}, false};
  PINNACE_TRY(set_sides(p, inputs_[0].id));
  ValueId chroma = kNoValue;
  if (!grey) {
    PINNACE_ASSIGN(chroma, chroma_of(p, of));
  }
  PictureBox box{Size::of(0), Size::of(0), p.height, p.width};
  if (cuts(how_)) {
    PINNACE_ASSIGN(box, box_of(p.height, p.width));
    PINNACE_ASSIGN(luma, nodes_.cut("crop", luma, 0, box));
    p.height = box.height, p.width = box.width;
  }
  PINNACE_ASSIGN(const ValueId axes, nodes_.ints({0, 1}));
  luma = nodes_.add("unsqueeze", "luma", {luma, axes});
  const ChromaMatrix m = chroma_matrix(how_.matrix);
  constexpr float kUnit = 1.0f / kChromaUnit;
  if (grey && m.luma == kChromaUnit) {
    p.id = luma;
    return p;
  }
  PINNACE_ASSIGN(ValueId numbers, nodes_.to_float("luma_numbers", luma, static_cast<float>(m.luma) * kUnit));
  if (grey) {
    const float offset = -16.0f * static_cast<float>(m.luma) * kUnit;
    PINNACE_ASSIGN(const ValueId by, nodes_.floats({}, {&offset, 1}));
    numbers = nodes_.add("add", "grey", {numbers, by});
  } else {
    PINNACE_ASSIGN(const ValueId colours, colours_of(chroma, m, box));
    numbers = nodes_.add("add", "rgb", {colours, numbers});
  }
  PINNACE_ASSIGN(p.id, nodes_.to_bytes("bytes", numbers));
  return p;
}

Result<ValueId> PictureSource::chroma_of(const Picture& p, const std::string& of) {
  const auto half = [](const Dim& d) { return d.known() ? Dim((d.size + 1) / 2) : Dim(); };
  const Dim rows = half(sides_[0]), columns = half(sides_[1]);
  std::vector<Size> pixels = {Size::of(1)}, halves;
  for (const Size& side : {p.height, p.width}) {
    PINNACE_ASSIGN(Size both, nodes_.calculate("add", side, 1));
    PINNACE_ASSIGN(both, nodes_.calculate("div", both, 2));
    pixels.push_back(both);
    halves.push_back(both);
  }
  const auto plane = [&](const std::string& suffix, const std::string& what, int64_t step) -> Result<ValueId> {
    const std::string key = suffix.substr(1);
    const bool pairs = form_.interleaved;
    const Dim high = rows.known() ? rows : open(key + ".height", 1);
    const Dim wide = !columns.known() ? open(key + ".width", pairs ? 2 : 1, pairs ? 2 : 1)
                     : pairs          ? Dim(2 * columns.size)
                                      : Dim(step * (columns.size - 1) + 1);
    PINNACE_ASSIGN(ValueId made, rows_of(suffix, what + of, high, wide, how_.chroma_row_stride));
    // A dynamic side of a plane must be half of luma's: as many elements with the other side kept (0) are equal sides.
    if (!wide.known()) {
      PINNACE_ASSIGN(const Size width, nodes_.calculate("mul", halves[1], pairs ? 2 : 1));
      const Size shape[] = {Size::of(0), width};
      PINNACE_ASSIGN(made, nodes_.reshape(str_cat(key, "_width_must_fit_y"), made, shape));
    }
    if (!high.known()) {
      const Size shape[] = {halves[0], Size::of(0)};
      PINNACE_ASSIGN(made, nodes_.reshape(str_cat(key, "_height_must_fit_y"), made, shape));
    }
    return made;
  };
  if (form_.interleaved) {
    const std::string what = form_.v_first ? "chroma (V, U)" : "chroma (U, V)";
    PINNACE_ASSIGN(ValueId uv, plane(".uv", what, 1));
    pixels.push_back(Size::of(2));
    PINNACE_ASSIGN(uv, nodes_.reshape("uv_pairs", uv, pixels));
    return nodes_.add("transpose", "uv", {uv}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  }
  std::vector<ValueId> both;
  pixels.insert(pixels.begin() + 1, Size::of(1));
  for (const auto& [suffix, what] : {std::pair(".u", "U"), std::pair(".v", "V")}) {
    PINNACE_ASSIGN(ValueId one, plane(suffix, what, how_.pixel_stride));
    if (how_.pixel_stride != 1) {
      const Size zero = Size::of(0), end = Size::of(how_.pixel_stride * (columns.size - 1) + 1);
      PINNACE_ASSIGN(one,
                     nodes_.slice(str_cat(suffix + 1, "_bytes"), one, {1}, {&zero, 1}, {&end, 1}, how_.pixel_stride));
    }
    PINNACE_ASSIGN(one, nodes_.reshape(suffix + 1, one, pixels));
    both.push_back(one);
  }
  return nodes_.add("concat", "uv", std::move(both), {{"axis", int64_t{1}}});
}

Result<ValueId> PictureSource::colours_of(ValueId chroma, const ChromaMatrix& m, const PictureBox& box) {
  PictureBox odd{Size::of(0), Size::of(0), box.height, box.width};  // the box within what is repeated 2 x 2
  if (cuts(how_)) {
    PictureBox half;
    const auto halves = [&](Size from, Size length, Size& first, Size& count, Size& rest) -> Status {
      PINNACE_ASSIGN(first, nodes_.calculate("div", from, 2));
      PINNACE_ASSIGN(rest, nodes_.calculate("mod", from, 2));
      PINNACE_ASSIGN(Size end, nodes_.calculate("add", from, length));
      PINNACE_ASSIGN(end, nodes_.calculate("add", end, 1));
      PINNACE_ASSIGN(end, nodes_.calculate("div", end, 2));
      PINNACE_ASSIGN(count, nodes_.calculate("sub", end, first));
      return {};
    };
    PINNACE_TRY(halves(box.top, box.height, half.top, half.height, odd.top));
    PINNACE_TRY(halves(box.left, box.width, half.left, half.width, odd.left));
    PINNACE_ASSIGN(chroma, nodes_.cut("uv_crop", chroma, 2, half));
  }
  std::vector<float> weights, offset;
  for (size_t c = 0; c < 3; ++c) {
    for (const bool first : {true, false}) {
      weights.push_back(static_cast<float>(first == form_.v_first ? m.v[c] : m.u[c]) / kChromaUnit);
    }
    offset.push_back(static_cast<float>(m.offset[c]) / kChromaUnit);
  }
  PINNACE_ASSIGN(ValueId x, nodes_.to_float("uv_numbers", chroma));
  PINNACE_ASSIGN(const ValueId w, nodes_.floats({3, 2, 1, 1}, weights));
  PINNACE_ASSIGN(const ValueId b, nodes_.floats({3}, offset));
  x = nodes_.add("conv", "colours", {x, w, b});
  PINNACE_ASSIGN(const Size bottom, nodes_.calculate("add", odd.top, box.height));
  PINNACE_ASSIGN(const Size right, nodes_.calculate("add", odd.left, box.width));
  const Size all[] = {bottom, right};
  PINNACE_ASSIGN(const ValueId sizes, nodes_.vector(all));
  x = nodes_.add("resize", "colour_pixels", {x, kNoValue, kNoValue, sizes},
                 {{"axes", std::vector<int64_t>{2, 3}},
                  {"coordinate_transformation_mode", std::string("asymmetric")},
                  {"factors", std::vector<double>{2, 2}},
                  {"nearest_mode", std::string("floor")}});
  const bool whole = odd.top.known == 0 && odd.left.known == 0;
  if (whole) return x;
  return nodes_.cut("colour_crop", x, 2, odd);
}

}  // namespace pinnace
