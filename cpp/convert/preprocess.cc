// Model::preprocessed(): nodes that make a model's input of a picture, in front of the graph.
//
// Up to the conversion the picture is bytes. YUV becomes RGB in float32 with weights that are whole numbers of 1 /
// 16384: every product and sum is exact, and quantize_linear rounds once. A resize computes on bytes as quantised
// numbers of scale 1, which all back ends sum in double. So the bytes are the same wherever it runs. The conversion is
// a difference and a product in float32, rounded each, which no fused multiply-add can join.
#include <algorithm>
#include <cmath>
#include <map>

#include <pinnace/model.h>

#include "base/dtype_code.h"
#include "base/exception_boundary.h"
#include "convert/model_data.h"
#include "convert/picture_form.h"
#include "convert/picture_nodes.h"
#include "convert/picture_source.h"
#include "ops/work.h"

namespace pinnace {
namespace {

using Size = PictureSize;

void replace_symbols(Graph& graph, const std::map<int32_t, int64_t>& fixed) {
  for (Value& value : graph.values) {
    for (Dim& d : value.type.shape) {
      if (const auto at = fixed.find(d.symbol); d.symbol >= 0 && at != fixed.end()) d = Dim(at->second);
    }
  }
  for (auto& node : graph.nodes) {
    for (auto& [name, attr] : node->attrs) {
      if (const auto* body = std::get_if<GraphPtr>(&attr)) replace_symbols(**body, fixed);
    }
  }
}

class Preprocessor {
 public:
  Preprocessor(Graph& graph, const Preprocessing& how, const PictureForm& form, size_t place)
      : graph_(graph),
        how_(how),
        form_(form),
        place_(place),
        target_(graph.inputs[place]),
        model_name_(graph.value(target_).name),
        nodes_(graph, how.name) {}

  Status run() {
    PINNACE_TRY(look_at_model());
    PINNACE_TRY(choose_sides());
    std::optional<Dim> batch;
    if (batch_ >= 0) batch = model_input().type.shape[static_cast<size_t>(batch_)];
    if (batch && (form_.planes || how_.row_stride != Preprocessing::kDense || how_.cut_last_row)) {
      PINNACE_TRY(fix(batch_, 1));
      batch = Dim(1);
    }
    PictureSource source(graph_, nodes_, how_, form_, place_, sides_, batch);
    PINNACE_ASSIGN(Picture picture, source.make());
    inputs = source.inputs();
    PINNACE_TRY(resize(picture));
    PINNACE_TRY(order_channels(picture));
    PINNACE_TRY(convert(picture));
    replace_symbols(graph_, fixed_);
    graph_.inputs.erase(graph_.inputs.begin() + static_cast<ptrdiff_t>(place_));
    std::vector<ValueId> made;
    for (const PictureInput& input : inputs) made.push_back(input.id);
    graph_.inputs.insert(graph_.inputs.begin() + static_cast<ptrdiff_t>(place_), made.begin(), made.end());
    return {};
  }

  std::vector<PictureInput> inputs;  ///< the new ones, in order

 private:
  template <class... Parts>
  Status refuse(const Parts&... parts) const {
    return invalid("preprocessing of '", how_.name, "': ", parts...);
  }
  const Value& model_input() const { return graph_.value(target_); }
  std::string model_says() const {
    return str_cat("input '", model_name_, "' is ", to_string(model_input().type, graph_.symbols));
  }

  // ---- what the model takes

  /// Where N, C, H and W are in the model's input; N is -1 where it takes one picture without that dimension.
  Status look_at_model() {
    const TensorType& type = model_input().type;
    if (type.rank() != 3 && type.rank() != 4) {
      return refuse(model_says(), ", a picture has the dimensions N, C, H, W, with or without the first");
    }
    const bool number = dtypes(type.dtype) & (kF32 | kF16 | kBF16);
    const bool byte = type.dtype == DType::kU8 || (type.dtype == DType::kI8 && type.quantized());
    if (!number && !byte) return refuse(model_says(), ", can be float32, float16, bfloat16, uint8 or quantised int8");
    if (type.quantized() && type.quantization->scales.size() != 1) {
      return refuse(model_says(), ", with a scale for each channel");
    }
    const int first = type.rank() - 3;
    batch_ = first - 1;
    const bool last = how_.output_layout == "nhwc";
    channel_ = first + (last ? 2 : 0);
    row_ = first + (last ? 0 : 1);
    const int64_t channels = how_.output == "grey" ? 1 : 3;
    if (!fits(type.shape[static_cast<size_t>(channel_)], channels)) {
      return refuse("output ", how_.output, " has ", channels, " channels, ", model_says(), " (", how_.output_layout,
                    ")");
    }
    return fix(channel_, channels);
  }

  bool fits(const Dim& dim, int64_t size) const {
    if (dim.symbol < 0) return dim == Dim(size);
    const Symbol& s = graph_.symbols[static_cast<size_t>(dim.symbol)];
    return size >= s.min && size <= s.max && size % s.multiple_of == 0;
  }

  /// Dimension d of the model's input has that size from here on.
  Status fix(int d, int64_t size) {
    const Dim dim = model_input().type.shape[static_cast<size_t>(d)];
    const auto known = fixed_.find(dim.symbol);
    const bool other = known != fixed_.end() && dim.symbol >= 0 && known->second != size;
    if (!fits(dim, size) || other) {
      return refuse("makes ", size, " of dimension ", d, ", ", model_says(), other ? ", where it is another one" : "");
    }
    if (dim.symbol >= 0) fixed_[dim.symbol] = size;
    return {};
  }

  // ---- sizes of the picture

  /// Sides as they enter: as given; else, where nothing changes them, the model's; else dynamic.
  Status choose_sides() {
    const bool changed = cuts(how_) || !how_.size.empty();
    const int64_t given[] = {how_.height, how_.width};
    for (int i = 0; i < 2; ++i) {
      Dim& side = sides_[i];
      const int64_t least = least_side(how_, static_cast<size_t>(i));
      const Dim model = model_input().type.shape[static_cast<size_t>(row_) + static_cast<size_t>(i)];
      if (given[i] != Preprocessing::kOpen) {
        side = given[i];
        if (!changed) PINNACE_TRY(fix(row_ + i, given[i]));
      } else if (!changed) {
        side = model;
        sized_by_model_ |= model.symbol >= 0;
      } else {
        side = dynamic_dim(graph_, how_.name + (i ? ".width" : ".height"), least);
      }
      if (side.known() && side.size < least) {
        return refuse("the box that is cut out is larger than the picture: ", i ? "width" : "height", " is ", side.size,
                      ", must be at least ", least);
      }
    }
    return {};
  }

  // ---- sizes

  Status channels_first(Picture& p) {
    if (!p.channels_last) return {};
    p.id = nodes_.add("transpose", "planes", {p.id}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
    p.channels_last = false;
    return {};
  }

  TensorType as_numbers(const DType dtype = DType::kU8) const {
    auto one = std::make_shared<Quantization>();
    one->scales = {1};
    one->zero_points = {0};
    return {dtype, Shape(4), std::move(one)};
  }

  Status resize(Picture& p) {
    if (p.order.ends_with("a")) PINNACE_TRY(drop_alpha(p));
    if (how_.size.empty()) return {};
    Size to[] = {Size::of(how_.size[0]), Size::of(how_.size.back())};
    if (how_.size.size() == 1) {
      PINNACE_ASSIGN(const Size shorter, nodes_.calculate("min", p.height, p.width));
      PINNACE_ASSIGN(to[0], nodes_.times(p.height, how_.size[0], shorter));
      PINNACE_ASSIGN(to[1], nodes_.times(p.width, how_.size[0], shorter));
    }
    const bool same =
        p.height.is_known() && p.width.is_known() && p.height.known == to[0].known && p.width.known == to[1].known;
    if (!same) {
      PINNACE_TRY(channels_first(p));
      const bool nearest = how_.resize != "bilinear";
      PictureNodes::Attrs attrs = {{"axes", std::vector<int64_t>{2, 3}}, {"factors", std::vector<double>{0, 0}}};
      if (!nearest) attrs.emplace_back("mode", std::string("linear"));
      if (!nearest && how_.antialias) {  // as torch has it: what the wide filter meets outside has no weight
        attrs.emplace_back("antialias", int64_t{1});
        attrs.emplace_back("exclude_outside", int64_t{1});
      }
      if (how_.resize == "nearest") {
        attrs.emplace_back("coordinate_transformation_mode", std::string("asymmetric"));
        attrs.emplace_back("nearest_mode", std::string("floor"));
      }
      if (how_.resize == "nearest_exact") attrs.emplace_back("nearest_mode", std::string("round_prefer_ceil"));
      PINNACE_ASSIGN(const ValueId sizes, nodes_.vector(to));
      // Numbers of a scale to the back ends, which then know the bits; the bytes are the same.
      p.id = nodes_.add("cast", "numbers", {p.id}, {{"to", std::string("u8")}}, as_numbers());
      p.id = nodes_.add("resize", "resize", {p.id, kNoValue, kNoValue, sizes}, std::move(attrs), as_numbers());
      p.id = nodes_.add("cast", "resized", {p.id}, {{"to", std::string("u8")}});
    }
    p.height = to[0], p.width = to[1];
    if (how_.center_crop.empty()) return {};
    const bool known = p.height.is_known() && p.width.is_known();
    const Size part[] = {Size::of(how_.center_crop[0]), Size::of(how_.center_crop[1])};
    PINNACE_ASSIGN(const PictureBox box, nodes_.middle(p.height, p.width, part[0], part[1]));
    PINNACE_ASSIGN(p.id, nodes_.cut("center_crop", p.id, p.row_axis(), box));
    p.height = part[0], p.width = part[1];
    if (known) return {};
    // A size that is known again.
    std::vector<Size> shape = {Size::of(0), part[0], part[1]};
    shape.insert(shape.begin() + (p.channels_last ? 3 : 1), Size::of(p.channels()));
    PINNACE_ASSIGN(p.id, nodes_.reshape("picture", p.id, shape));
    return {};
  }

  // ---- channels and numbers

  Status drop_alpha(Picture& p) {
    const Size from = Size::of(0), to = Size::of(3);
    PINNACE_ASSIGN(p.id, nodes_.slice("opaque", p.id, {p.channels_last ? 3 : 1}, {&from, 1}, {&to, 1}));
    p.order.remove_suffix(1);
    return {};
  }

  Status order_channels(Picture& p) {
    if (p.order == how_.output) return {};
    const int64_t axis = p.channels_last ? 3 : 1;
    if (p.order == "grey") {
      p.id = nodes_.add("concat", how_.output, {p.id, p.id, p.id}, {{"axis", axis}});
    } else if (how_.output != "grey") {
      PINNACE_ASSIGN(const ValueId turned, nodes_.ints({2, 1, 0}));
      p.id = nodes_.add("gather", how_.output, {p.id, turned}, {{"axis", axis}});
    } else {
      PINNACE_TRY(channels_first(p));
      std::vector<float> weights;
      for (int32_t w : kGreyWeights) weights.push_back(static_cast<float>(w) / kChromaUnit);
      if (p.order == "bgr") std::reverse(weights.begin(), weights.end());
      PINNACE_ASSIGN(ValueId x, nodes_.to_float("rgb_numbers", p.id));
      PINNACE_ASSIGN(const ValueId w, nodes_.floats({1, 3, 1, 1}, weights));
      x = nodes_.add("conv", "luma", {x, w});
      PINNACE_ASSIGN(p.id, nodes_.to_bytes("grey", x));
    }
    p.order = how_.output;
    return {};
  }

  /// mean / scale and scale / std for each channel, rounded once; one number where all are the same.
  std::vector<float> per_channel(const std::vector<double>& list, double otherwise, bool divides) const {
    std::vector<float> numbers;
    for (double x : list.empty() ? std::vector<double>{otherwise} : list) {
      numbers.push_back(static_cast<float>(divides ? how_.scale / x : x / how_.scale));
    }
    return numbers;
  }

  Result<ValueId> constant(const std::vector<float>& numbers, bool channels_last) {
    Shape shape(4, Dim(1));
    shape[channels_last ? 3 : 1] = static_cast<int64_t>(numbers.size());
    return nodes_.floats(numbers.size() == 1 ? Shape{} : shape, numbers);
  }

  Status convert(Picture& p) {
    const TensorType type = model_input().type;
    for (int i = 0; i < 2; ++i) {
      const Size& side = i ? p.width : p.height;
      if (side.is_known()) {
        PINNACE_TRY(fix(row_ + i, side.known));
      } else if (!sized_by_model_ || !how_.size.empty() || cuts(how_)) {
        return refuse(
            "the model's sizes would follow from the picture's, which are dynamic: give size, center_crop, or "
            "height and width");
      }
    }
    if (how_.output_layout == "nchw") {
      PINNACE_TRY(channels_first(p));
    } else if (!p.channels_last) {
      p.id = nodes_.add("transpose", "pixels_last", {p.id}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
      p.channels_last = true;
    }
    if (batch_ < 0) {
      PINNACE_ASSIGN(const ValueId axis, nodes_.ints({0}));
      p.id = nodes_.add("squeeze", "one_picture", {p.id, axis});
    }
    const bool plain_bytes = type.dtype == DType::kU8 && !type.quantized();
    if (plain_bytes) {
      if (!how_.mean.empty() || !how_.std.empty()) {
        return refuse("mean and std make floats, ", model_says(), ": bytes go in as they are");
      }
    } else {
      PINNACE_TRY(to_numbers(p, type));
    }
    if (!nodes_.any()) nodes_.add("identity", "bytes", {p.id});
    nodes_.make_last(target_);
    return {};
  }

  Status to_numbers(Picture& p, const TensorType& type) {
    const std::vector<float> mean = per_channel(how_.mean, 0, false), factor = per_channel(how_.std, 1, true);
    const auto all = [](const std::vector<float>& list, float x) {
      return std::all_of(list.begin(), list.end(), [x](float y) { return y == x; });
    };
    PINNACE_ASSIGN(p.id, nodes_.to_float("float", p.id));
    if (!all(mean, 0)) {
      PINNACE_ASSIGN(const ValueId by, constant(mean, p.channels_last));
      p.id = nodes_.add("sub", "mean", {p.id, by});
    }
    if (!all(factor, 1)) {
      PINNACE_ASSIGN(const ValueId by, constant(factor, p.channels_last));
      p.id = nodes_.add("mul", "std", {p.id, by});
    }
    if (type.quantized()) {
      const float scale = type.quantization->scales[0];
      PINNACE_ASSIGN(const ValueId by, nodes_.floats({}, {&scale, 1}));
      const auto zero = static_cast<uint8_t>(type.quantization->zero_points[0]);
      PINNACE_ASSIGN(const ValueId from,
                     graph_.add_constant_of<uint8_t>(how_.name + "/zero", type.dtype, {}, {&zero, 1}));
      p.id = nodes_.add("quantize_linear", "quantized", {p.id, by, from});
    }
    if (type.dtype != DType::kF32) {
      p.id = nodes_.add("cast", "typed", {p.id}, {{"to", std::string(dtype_code(type.dtype))}});
    }
    return {};
  }

  Graph& graph_;
  const Preprocessing& how_;
  const PictureForm& form_;
  const size_t place_;
  const ValueId target_;
  const std::string model_name_;
  PictureNodes nodes_;
  int batch_ = -1, channel_ = 0, row_ = 0;  ///< dimensions of the model's input; columns follow rows
  Dim sides_[2];                            ///< height and width of the picture as it enters
  bool sized_by_model_ = false;             ///< dynamic sides that are the model's
  std::map<int32_t, int64_t> fixed_;        ///< sizes of symbols from here on
};

/// The place of the input with that name; without a name the only one that can be a picture.
Result<size_t> place_of(const Graph& graph, std::string_view name) {
  std::vector<size_t> found;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    const int rank = value.type.rank();
    if (name.empty() ? rank == 3 || rank == 4 : value.name == name) found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  std::string list;
  for (const ValueId id : graph.inputs) list += str_cat(list.empty() ? "'" : ", '", graph.value(id).name, "'");
  if (!name.empty()) return invalid("preprocessing: the model has no input '", name, "', it has ", list);
  return invalid("preprocessing: say which input is the picture, ", found.size(), " of ", list, " can be");
}

}  // namespace

Result<Model> Model::preprocessed(const Preprocessing& how, std::string_view input) const {
  return exception_boundary([&]() -> Result<Model> {
    const AheadBudget budget;
    PINNACE_ASSIGN(const PictureForm form, picture_form(how));
    std::shared_ptr<Data> data = data_->clone();
    PINNACE_ASSIGN(const size_t place, place_of(data->graph, input));
    const std::string model_input = data->graph.value(data->graph.inputs[place]).name;
    Preprocessor work(data->graph, how, form, place);
    PINNACE_TRY(work.run());
    for (const PictureInput& made : work.inputs) {
      data->facts.emplace_back(str_cat("input.", data->graph.value(made.id).name), made.what);
    }
    PINNACE_ASSIGN(std::string all, describe(how));
    data->facts.emplace_back(str_cat("preprocessing.", model_input), std::move(all));
    std::vector<std::string> names, results(data->graph.output_names);
    for (const ValueId id : data->graph.inputs) names.push_back(data->graph.value(id).name);
    const std::vector<PassReport> reports = data->reports;
    PINNACE_ASSIGN(const Model made, optimized(std::move(data), {.disabled = {"all"}}));
    PINNACE_ASSIGN(const Model named, made.with_names(names, results));  // checks the names
    std::shared_ptr<Data> kept = named.data().clone();
    kept->reports = reports;
    return Model(std::move(kept));
  });
}

}  // namespace pinnace
