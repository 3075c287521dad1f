// Rules of operators that slide a window over time: conv, pools and stft keep the elements that the next window begins
// with, and so do pads that mirror; conv_transpose and col2im, which spread elements, keep those that still reach into
// the next chunk.
#include <algorithm>
#include <limits>

#include "stream/rules.h"

namespace pinnace {
namespace {

/// Output j reads elements j * stride - left to j * stride - left + span of the input; `right` more may be padding.
struct TimeWindow {
  int64_t span = 0, stride = 1, left = 0, right = 0;
  double padding = 0;
  PadMode pad_mode = PadMode::kConstant;
};

/// Reads kernel, strides, dilations and pads of the axis of time; `kernel` is the whole kernel's shape.
Result<TimeWindow> window_of(const StreamReader& reader, const Node& node, const std::vector<int64_t>& kernel,
                             int axis) {
  if (axis < 2) return cannot_stream("time is the axis of channels", str_cat("axis ", axis));
  const auto at = static_cast<size_t>(axis) - 2;
  const auto entry = [&](std::string_view name, size_t i, int64_t otherwise) {
    const auto all = reader.attr_ints(node, name);
    return i < all.size() ? all[i] : otherwise;
  };
  const std::string_view auto_pad = reader.attr_string(node, "auto_pad");
  if (auto_pad != "notset" && auto_pad != "valid" && !auto_pad.empty()) {
    return cannot_stream("pads depend on the number of elements", std::string(auto_pad));
  }
  if (at >= kernel.size() || kernel[at] < 1) return cannot_stream("the kernel's size is not known");
  TimeWindow w;
  w.span = (kernel[at] - 1) * entry("dilations", at, 1);
  w.stride = entry("strides", at, 1);
  w.left = entry("pads", at, 0);
  w.right = entry("pads", kernel.size() + at, 0);
  return w;
}

std::vector<int64_t> spatial(const TensorType& weight) {
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < weight.shape.size(); ++i) kernel.push_back(weight.shape[i].size);
  return kernel;
}

void clear_pads(Node& node, int axis, size_t rank) {
  Attr* attr = node.attr("pads");
  if (!attr) return;
  auto& pads = std::get<std::vector<int64_t>>(*attr);
  pads[static_cast<size_t>(axis) - 2] = pads[static_cast<size_t>(axis) - 2 + rank] = 0;
}

/// Elements [-tail, chunk - spare) of the stream, counted from the first one of the chunk, where those outside the
/// value are made of those inside. The windows of a chunk read no others.
Result<ValueId> with_pads(StreamWriter& w, ValueId x, const Flow& in, const TimeWindow& window, const Needed& reads,
                          int64_t tail, int64_t spare) {
  const TensorType one{DType::kI64, {1}, nullptr}, line{DType::kI64, {Dim()}, nullptr};
  const bool mirrors = window.pad_mode == PadMode::kReflect;
  const auto binary = [&](std::string_view op, const std::string& name, ValueId a, ValueId b) {
    return w.add(op, name, {a, b}, line);
  };
  // Behind the end, which is known in the last run alone, elements are read again that came long before.
  int64_t kept = std::max<int64_t>(0, tail);
  const int64_t behind = std::max<int64_t>(0, reads.last - in.more);
  if (behind > 0) kept = std::max(kept, (mirrors ? behind : 0) + 1 - in.more - in.delay);
  PINNACE_ASSIGN(x, w.with_tail(x, in, kept, 0, "tail"));
  PINNACE_ASSIGN(const ValueId zero, w.ints({0}));
  PINNACE_ASSIGN(const ValueId unit, w.ints({1}));
  PINNACE_ASSIGN(const ValueId begin, w.ints({-tail}));
  PINNACE_ASSIGN(const ValueId count, w.chunk(in.up, in.down));
  ValueId end = count;
  if (spare > 0) {
    PINNACE_ASSIGN(const ValueId left_out, w.ints({spare}));
    end = w.add("sub", "end", {count, left_out}, one);
  }
  ValueId place = w.add("range", "places", {begin, end, unit}, line);
  if (reads.first < 0) {
    PINNACE_ASSIGN(const ValueId first, w.early(in, tail));
    if (mirrors) {
      const ValueId inside = binary("sub", "from_first", place, first),
                    outside = binary("sub", "mirrored", first, place);
      place = binary("add", "begun", binary("max", "distance", inside, outside), first);
    } else {
      place = binary("max", "begun", place, first);
    }
  }
  if (behind > 0) {
    PINNACE_ASSIGN(const ValueId last, w.last_within(in));
    if (mirrors) {
      const ValueId over = binary("max", "over", binary("sub", "from_last", place, last), zero);
      place = binary("sub", "not_over", binary("sub", "at_last", place, over), over);
    } else {
      place = binary("min", "not_over", place, last);
    }
  }
  // What only windows of no element of the result read may lie anywhere.
  PINNACE_ASSIGN(const ValueId shift, w.ints({kept}));
  PINNACE_ASSIGN(const ValueId most, w.ints({kept - 1}));
  place = binary("max", "not_before", binary("add", "in_tail", place, shift), zero);
  place = binary("min", "inside", place, w.add("add", "last_place", {count, most}, one));
  return w.add("gather", "padded", {x, place}, w.type(x), {{"axis", int64_t{in.axis}}});
}

/// The window over `source`, of which the node's first operand is a copy, padded and reshaped as through_pads() finds
/// it; in steps. `write` makes the node from its new first operand, which has what the windows read and no more.
Result<StreamStep> slide(StreamReader& reader, const Node& node, ValueId source, const TimeWindow& window,
                         std::function<Status(StreamWriter&, ValueId)> write) {
  const Flow given = *reader.flow(source);
  const auto reads = [window](const Needed& n) {
    return Needed{n.first * window.stride - window.left, (n.last - 1) * window.stride - window.left + window.span + 1};
  };
  Flow out = given.scaled(1, window.stride);
  out.axis = reader.flow(node, 0)->axis;
  reader.need_multiple(out.down);
  out.more = floor_div(given.more + window.left + window.right - window.span - 1, window.stride) + 1;
  out.before.reset();
  out.after.reset();
  out.fill = 0;
  const int64_t last_read = reads({0, out.more}).last;
  Flow in = given.ended(last_read, window.padding);
  if (window.pad_mode != PadMode::kConstant) {
    in = given.delayed(std::max({int64_t{0}, given.delay, last_read > given.more ? -given.more : 0}));
  }
  // Windows begin at stride * i - tail of the stream, of which the first must be one of the value's: that fixes the
  // delay up to a stride; the least is taken with which every window of a chunk is complete.
  const int64_t least = window.span - window.stride + 1 + in.delay - window.left;
  out.delay = std::max<int64_t>(0, ceil_div(least, window.stride));
  // The first window has come when the element has that its first one mirrors.
  if (window.pad_mode != PadMode::kConstant && window.left > 0) {
    const int64_t mirrored = window.pad_mode == PadMode::kReflect ? window.left : 0;
    out.delay = std::max(out.delay, ceil_div(mirrored + in.delay + 1, window.stride) - 1);
  }
  const int64_t tail = out.delay * window.stride + window.left - in.delay;
  StreamStep step;
  step.outputs.assign(node.outputs.size(), std::nullopt);
  step.outputs[0] = out;
  step.reads = reads;
  step.source = source;
  std::vector<int64_t> shape;
  if (source != node.inputs[0]) {
    for (const Dim& d : reader.type(node.inputs[0]).shape) shape.push_back(d.size);
    shape[static_cast<size_t>(out.axis)] = -1;
  }
  step.write = [source, given, in, window, tail, reads, shape, write = std::move(write)](
                   StreamWriter& w, const Needed& needed) -> Status {
    const auto shaped = [&](ValueId x) -> Status {
      TensorType type = w.type(x);
      const auto same = [](const Dim& a, int64_t b) { return b < 0 || a == Dim(b); };
      if (shape.empty() || std::equal(type.shape.begin(), type.shape.end(), shape.begin(), shape.end(), same)) {
        return write(w, x);
      }
      type.shape.assign(shape.begin(), shape.end());
      for (Dim& d : type.shape) d = d.size < 0 ? Dim() : d;
      PINNACE_ASSIGN(const ValueId sizes, w.ints(shape));
      return write(w, w.add("reshape", "windows_shaped", {x, sizes}, type));
    };
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(source), given, in.delay));
    const Needed read = reads(needed);
    const int64_t skipped = std::max<int64_t>(0, -tail), spare = std::max<int64_t>(0, tail - window.span);
    if (window.pad_mode != PadMode::kConstant && (read.first < 0 || read.last > in.more)) {
      PINNACE_ASSIGN(x, with_pads(w, x, in, window, read, tail, spare));
      return shaped(x);
    }
    PINNACE_ASSIGN(x, w.padded(x, in, read, window.padding));
    PINNACE_ASSIGN(x, w.with_tail(x, in, std::max<int64_t>(tail, 0), window.padding, "tail"));
    if (skipped || spare) {
      PINNACE_ASSIGN(x, w.cut(x, in.axis, skipped, -spare, 1, "windows"));
    }
    return shaped(x);
  };
  return step;
}

/// Windows of a value that a pad node mirrors along time are windows of what it pads: nothing is as late as the whole
/// pad would be. Gives what they read, of which the value may be a reshape.
ValueId through_pads(const StreamReader& reader, const Node& node, TimeWindow& window) {
  if (window.left != 0 || window.right != 0) return node.inputs[0];
  ValueId padded = node.inputs[0];
  for (auto at = reader.graph.nodes.rbegin(); at != reader.graph.nodes.rend(); ++at) {
    const Node& made = **at;
    if (made.outputs[0] != padded || !reader.flow(made, 0)) continue;
    const Flow &from = *reader.flow(made, 0), &to = *reader.flow(padded);
    if (made.op == "reshape" || made.op == "squeeze" || made.op == "unsqueeze") {
      if (!from.same_rate(to) || from.more != to.more) break;
      padded = made.inputs[0];
      continue;
    }
    if (made.op != "pad") break;
    const auto pads = pads_of(reader, made, from.axis);
    if (!pads || pads->others || pads->time.pad_mode == PadMode::kConstant) break;
    window.left = pads->time.begin;
    window.right = pads->time.end;
    window.pad_mode = pads->time.pad_mode;
    return made.inputs[0];
  }
  return node.inputs[0];
}

/// Element i of the input is spread over elements i * stride - left to i * stride - left + span of the result.
struct Spread {
  int64_t span = 0, stride = 1, left = 0;
};

/// The spreading in steps, of a result of `more` elements beside the input's times the stride. `write` makes the node
/// from its new first input, of n elements, and gives (n - 1) * stride + max(span + 1, stride) elements along `axis`.
Result<StreamStep> spread(StreamReader& reader, const Node& node, const Spread& by, int axis, int64_t more,
                          std::function<Result<ValueId>(StreamWriter&, ValueId)> write) {
  const Flow in = *reader.flow(node, 0);
  const auto reads = [by](const Needed& n) {
    return Needed{ceil_div(n.first + by.left - by.span, by.stride), floor_div(n.last - 1 + by.left, by.stride) + 1};
  };
  Flow out = in.scaled(by.stride, 1);
  out.axis = axis;
  out.more = more;
  Flow begun = in.ended(reads({0, out.more}).last, 0);
  if (begun.delay * by.stride + by.left < 0) begun = in.delayed(0);  // what the stream leaves out is computed with
  out.delay = begun.delay * by.stride + by.left;
  out.before.reset();
  out.after.reset();
  out.fill = 0;
  StreamStep step;
  step.outputs = {out};
  step.reads = reads;
  step.write = [&node, in, begun, by, axis, reads, write = std::move(write)](StreamWriter& w,
                                                                             const Needed& needed) -> Status {
    const int64_t tail = by.span / by.stride, behind = std::max<int64_t>(0, by.span + 1 - by.stride);
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(node.inputs[0]), in, begun.delay));
    PINNACE_ASSIGN(x, w.padded(x, begun, reads(needed), 0));
    PINNACE_ASSIGN(x, w.with_tail(x, begun, tail, 0, "tail"));
    PINNACE_ASSIGN(ValueId y, write(w, x));
    // Those of the chunk are n * stride from tail * stride on.
    if (tail || behind) {
      PINNACE_ASSIGN(y, w.cut(y, axis, tail * by.stride, -behind, 1, "chunk"));
    }
    w.map(node.outputs[0], y);
    return {};
  };
  return step;
}

}  // namespace

Result<StreamStep> stream_window(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  if (!f) return cannot_stream("its weights come as a stream");
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (reader.flow(node, i)) return cannot_stream("its weights come as a stream");
  }
  const bool batch = f->axis == 0;
  if (batch) {
    return stream_together(reader, node, [](size_t, int axis) { return std::optional(axis); });
  }
  if (node.op == "stft") {
    const auto step = reader.number(node, 1), length = reader.number(node, 3);
    const TensorType* window = reader.has(node, 2) ? &reader.type(node.inputs[2]) : nullptr;
    if (!step || (!length && (!window || !window->concrete()))) {
      return cannot_stream("the step and the length of frames are not constant");
    }
    if (f->axis != 1) return cannot_stream("time is not the axis of the signal", str_cat("axis ", f->axis));
    TimeWindow frames;
    frames.span = (length ? static_cast<int64_t>(*length) : window->elements()) - 1;
    frames.stride = static_cast<int64_t>(*step);
    const ValueId source = through_pads(reader, node, frames);
    return slide(reader, node, source, frames, [&node](StreamWriter& w, ValueId x) -> Status {
      std::vector<ValueId> inputs = {x};
      for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
      w.copy(node, std::move(inputs));
      return {};
    });
  }
  const bool pools = node.op != "conv";
  const std::vector<int64_t> kernel =
      pools ? reader.attr_ints(node, "kernel_shape") : spatial(reader.type(node.inputs[1]));
  PINNACE_ASSIGN(TimeWindow window, window_of(reader, node, kernel, f->axis));
  if (pools) {
    if (reader.attr_int(node, "ceil_mode")) return cannot_stream("ceil_mode depends on the number of elements");
    if (node.op == "max_pool") {
      window.padding = -std::numeric_limits<double>::infinity();
      const TensorType& x = reader.type(node.inputs[0]);
      if (!x.quantized() && (x.dtype == DType::kI8 || x.dtype == DType::kU8)) {
        return cannot_stream("pools of integers have no rule");
      }
    } else if (!reader.attr_int(node, "count_include_pad") && (window.left || window.right)) {
      return cannot_stream("padding is left out of means (count_include_pad is false)");
    }
  }
  const ValueId source = through_pads(reader, node, window);
  return slide(reader, node, source, window, [&node, axis = f->axis, rank = kernel.size()](StreamWriter& w, ValueId x) {
    std::vector<ValueId> inputs = {x};
    for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
    clear_pads(w.copy(node, std::move(inputs)), axis, rank);
    return Status();
  });
}

Result<StreamStep> stream_copied_pads(StreamReader& reader, const Node& node, const TimePads& pads,
                                      std::function<Result<ValueId>(StreamWriter&, ValueId)> write_rest) {
  TimeWindow window;
  window.left = pads.begin;
  window.right = pads.end;
  window.pad_mode = pads.pad_mode;
  return slide(reader, node, node.inputs[0], window,
               [&node, write_rest = std::move(write_rest)](StreamWriter& w, ValueId x) -> Status {
                 if (write_rest) {
                   PINNACE_ASSIGN(x, write_rest(w, x));
                 }
                 w.map(node.outputs[0], x);
                 return {};
               });
}

Result<StreamStep> stream_transposed_window(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  if (!f || reader.flow(node, 1)) return cannot_stream("its weights come as a stream");
  if (f->axis == 0) {
    return stream_together(reader, node, [](size_t, int axis) { return std::optional(axis); });
  }
  if (!reader.attr_ints(node, "output_shape").empty()) return cannot_stream("the size of the result is fixed");
  const std::vector<int64_t> kernel = spatial(reader.type(node.inputs[1]));
  PINNACE_ASSIGN(const TimeWindow window, window_of(reader, node, kernel, f->axis));
  const auto adds = reader.attr_ints(node, "output_padding");
  const int64_t added = adds.empty() ? 0 : adds[static_cast<size_t>(f->axis) - 2];
  const Spread by{window.span, window.stride, window.left};
  const int64_t more = (f->more - 1) * by.stride + by.span + 1 + added - window.left - window.right;
  return spread(reader, node, by, f->axis, more,
                [&node, by, axis = f->axis, rank = kernel.size()](StreamWriter& w, ValueId x) -> Result<ValueId> {
                  std::vector<ValueId> inputs = {x};
                  for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
                  Node& made = w.copy(node, std::move(inputs));
                  clear_pads(made, axis, rank);
                  const Attr* attr = made.attr("output_padding");
                  auto adds = attr ? std::get<std::vector<int64_t>>(*attr) : std::vector<int64_t>(rank, 0);
                  adds[static_cast<size_t>(axis) - 2] = std::max<int64_t>(0, by.stride - by.span - 1);
                  if (std::any_of(adds.begin(), adds.end(), [](int64_t n) { return n != 0; })) {
                    made.set_attr("output_padding", adds);
                  } else {
                    made.remove_attr("output_padding");
                  }
                  return made.outputs[0];
                });
}

Result<StreamStep> stream_col2im(StreamReader& reader, const Node& node) {
  const Flow* f = reader.flow(node, 0);
  const auto image = reader.lengths(node, 1);
  const auto block = reader.ints(node, 2);
  if (!f || !image || !block) return cannot_stream("the sizes of its blocks are not constant");
  if (f->axis != 2) return cannot_stream("time is not the axis of the blocks' places", str_cat("axis ", f->axis));
  std::optional<size_t> time;
  for (size_t i = 0; i < image->size(); ++i) {
    if ((*image)[i].fixed()) continue;
    if (time) return cannot_stream("two sizes of the image grow with the number of elements");
    time = i;
  }
  if (!time) return cannot_stream("the size of the result is fixed");
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < image->size(); ++i) {
    sizes.push_back((*image)[i].plus);
    if (i == *time) continue;
    PINNACE_ASSIGN(const TimeWindow other, window_of(reader, node, *block, static_cast<int>(i) + 2));
    const int64_t places = floor_div(sizes[i] + other.left + other.right - other.span - 1, other.stride) + 1;
    if (places != 1) return cannot_stream("places along another axis lie between those along time", str_cat(places));
  }
  const int axis = static_cast<int>(*time) + 2;
  PINNACE_ASSIGN(const TimeWindow window, window_of(reader, node, *block, axis));
  const Spread by{window.span, window.stride, window.left};
  const Length& length = (*image)[*time];
  const Flow out = f->scaled(by.stride, 1);
  const int64_t least = (f->more - 1) * by.stride + by.span + 1 - window.left - window.right;
  if (length.up != out.up || length.down != out.down || length.plus < least || length.plus >= least + by.stride) {
    return cannot_stream("the image grows otherwise than its blocks",
                         str_cat("T * ", length.up, "/", length.down, " + ", length.plus));
  }
  return spread(reader, node, by, axis, length.plus,
                [&node, by, sizes, axis, in = *f, at = *time](StreamWriter& w, ValueId x) -> Result<ValueId> {
                  // The places of the chunk, and those that are kept.
                  const int64_t beside = (by.span / by.stride - 1) * by.stride + std::max(by.span + 1, by.stride);
                  PINNACE_ASSIGN(ValueId size, w.chunk(in.up * by.stride, in.down));
                  PINNACE_ASSIGN(const ValueId rest, w.ints({beside}));
                  size = w.add("add", "length", {size, rest}, TensorType{DType::kI64, {1}, nullptr});
                  PINNACE_ASSIGN(const ValueId shape, w.with_size(sizes, at, size));
                  Node& made = w.copy(node, {x, shape, w.mapped(node.inputs[2])});
                  clear_pads(made, axis, sizes.size());
                  return made.outputs[0];
                });
}

}  // namespace pinnace
