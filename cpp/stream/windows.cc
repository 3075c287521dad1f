// Rules of operators that slide a window over time: conv, pools and stft keep the elements that the next window begins
// with; conv_transpose, which spreads elements, keeps those that still reach into the next chunk.
#include <limits>

#include "stream/rules.h"

namespace pinnace {
namespace {

/// Output j reads elements j * stride - left to j * stride - left + span of the input; `right` more may be padding.
struct TimeWindow {
  int64_t span = 0, stride = 1, left = 0, right = 0;
  double padding = 0;
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

/// The window in steps; `write` makes the node from its new first input, which has what the windows read and no more.
Result<StreamStep> slide(StreamReader& reader, const Node& node, const TimeWindow& window,
                         std::function<Status(StreamWriter&, ValueId)> write) {
  const Flow given = *reader.flow(node, 0);
  const auto reads = [window](const Needed& n) {
    return Needed{n.first * window.stride - window.left, (n.last - 1) * window.stride - window.left + window.span + 1};
  };
  Flow out = given.scaled(1, window.stride);
  reader.need_multiple(out.down);
  out.more = floor_div(given.more + window.left + window.right - window.span - 1, window.stride) + 1;
  out.before.reset();
  out.after.reset();
  out.fill = 0;
  const Flow in = given.ended(reads({0, out.more}).last, window.padding);
  // Windows begin at stride * i - tail of the stream, of which the first must be one of the value's: that fixes the
  // delay up to a stride; the least is taken with which every window of a chunk is complete.
  const int64_t least = window.span - window.stride + 1 + in.delay - window.left;
  out.delay = std::max<int64_t>(0, ceil_div(least, window.stride));
  const int64_t tail = out.delay * window.stride + window.left - in.delay;
  StreamStep step;
  step.outputs.assign(node.outputs.size(), std::nullopt);
  step.outputs[0] = out;
  step.reads = reads;
  step.write = [&node, given, in, window, tail, reads, write = std::move(write)](StreamWriter& w,
                                                                                 const Needed& needed) -> Status {
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(node.inputs[0]), given, in.delay));
    PINNACE_ASSIGN(x, w.padded(x, in, reads(needed), window.padding));
    PINNACE_ASSIGN(x, w.with_tail(x, in, std::max<int64_t>(tail, 0), window.padding, "tail"));
    const int64_t skipped = std::max<int64_t>(0, -tail), spare = std::max<int64_t>(0, tail - window.span);
    if (skipped || spare) {
      PINNACE_ASSIGN(x, w.cut(x, in.axis, skipped, -spare, 1, "windows"));
    }
    return write(w, x);
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
    const int64_t n = length ? static_cast<int64_t>(*length) : window->elements();
    return slide(reader, node, {n - 1, static_cast<int64_t>(*step)}, [&node](StreamWriter& w, ValueId x) -> Status {
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
      const DType dtype = reader.type(node.inputs[0]).dtype;
      if (dtype == DType::kI8 || dtype == DType::kU8) return cannot_stream("pools of integers have no rule");
    } else if (!reader.attr_int(node, "count_include_pad") && (window.left || window.right)) {
      return cannot_stream("padding is left out of means (count_include_pad is false)");
    }
  }
  return slide(reader, node, window, [&node, axis = f->axis, rank = kernel.size()](StreamWriter& w, ValueId x) {
    std::vector<ValueId> inputs = {x};
    for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
    clear_pads(w.copy(node, std::move(inputs)), axis, rank);
    return Status();
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
  const Flow in = *f;
  const int64_t stride = window.stride, span = window.span;
  const auto reads = [stride, span, left = window.left](const Needed& n) {
    return Needed{ceil_div(n.first + left - span, stride), floor_div(n.last - 1 + left, stride) + 1};
  };
  Flow out = in.scaled(stride, 1);
  out.more = (in.more - 1) * stride + span + 1 + added - window.left - window.right;
  Flow begun = in.ended(reads({0, out.more}).last, 0);
  if (begun.delay * stride + window.left < 0) begun = in.delayed(0);  // what the stream leaves out is computed with
  out.delay = begun.delay * stride + window.left;
  out.before.reset();
  out.after.reset();
  out.fill = 0;
  StreamStep step;
  const int64_t tail = span / stride;
  step.outputs = {out};
  step.reads = reads;
  step.write = [&node, in, begun, stride, span, tail, reads, rank = kernel.size()](StreamWriter& w,
                                                                                   const Needed& needed) -> Status {
    PINNACE_ASSIGN(ValueId x, w.delayed(w.mapped(node.inputs[0]), in, begun.delay));
    PINNACE_ASSIGN(x, w.padded(x, begun, reads(needed), 0));
    PINNACE_ASSIGN(x, w.with_tail(x, begun, tail, 0, "tail"));
    std::vector<ValueId> inputs = {x};
    for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(w.mapped(node.inputs[i]));
    Node& made = w.copy(node, std::move(inputs));
    clear_pads(made, begun.axis, rank);
    // (tail + n - 1) * stride + span + 1 + padding places, of which those of the chunk are n * stride from tail *
    // stride on.
    int64_t behind = span + 1 - stride;
    if (behind < 0) {
      auto adds = std::vector<int64_t>(rank, 0);
      if (const Attr* attr = made.attr("output_padding")) adds = std::get<std::vector<int64_t>>(*attr);
      adds[static_cast<size_t>(begun.axis) - 2] = -behind;
      made.set_attr("output_padding", adds);
      behind = 0;
    } else if (const Attr* attr = made.attr("output_padding")) {
      auto adds = std::get<std::vector<int64_t>>(*attr);
      adds[static_cast<size_t>(begun.axis) - 2] = 0;
      made.set_attr("output_padding", adds);
    }
    if (tail || behind) {
      PINNACE_ASSIGN(const ValueId y, w.cut(made.outputs[0], begun.axis, tail * stride, -behind, 1, "chunk"));
      w.map(node.outputs[0], y);
    }
    return {};
  };
  return step;
}

}  // namespace pinnace
