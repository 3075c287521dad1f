// The rules that rules.inc names, and what several of them use.
#pragma once

#include "stream/rule.h"

namespace pinnace {

Result<StreamStep> stream_attention(StreamReader& reader, const Node& node);
Result<StreamStep> stream_behind_axis(StreamReader& reader, const Node& node);
Result<StreamStep> stream_channelwise(StreamReader& reader, const Node& node);
Result<StreamStep> stream_col2im(StreamReader& reader, const Node& node);
Result<StreamStep> stream_concat(StreamReader& reader, const Node& node);
Result<StreamStep> stream_cum_sum(StreamReader& reader, const Node& node);
Result<StreamStep> stream_einsum(StreamReader& reader, const Node& node);
Result<StreamStep> stream_elementwise(StreamReader& reader, const Node& node);
Result<StreamStep> stream_expand(StreamReader& reader, const Node& node);
Result<StreamStep> stream_fourier(StreamReader& reader, const Node& node);
Result<StreamStep> stream_gather(StreamReader& reader, const Node& node);
Result<StreamStep> stream_one_axis(StreamReader& reader, const Node& node);
Result<StreamStep> stream_pad(StreamReader& reader, const Node& node);
Result<StreamStep> stream_product(StreamReader& reader, const Node& node);
Result<StreamStep> stream_range(StreamReader& reader, const Node& node);
Result<StreamStep> stream_recurrent(StreamReader& reader, const Node& node);
Result<StreamStep> stream_reduction(StreamReader& reader, const Node& node);
Result<StreamStep> stream_reshape(StreamReader& reader, const Node& node);
Result<StreamStep> stream_resize(StreamReader& reader, const Node& node);
Result<StreamStep> stream_slice(StreamReader& reader, const Node& node);
Result<StreamStep> stream_transpose(StreamReader& reader, const Node& node);
Result<StreamStep> stream_transposed_window(StreamReader& reader, const Node& node);
Result<StreamStep> stream_window(StreamReader& reader, const Node& node);

/// Each element of the results' time is computed from the same one of the operands, which come at one rate.
/// axis_of(i, axis): where the time of operand i is in the results; nothing: the operator mixes its elements.
Result<StreamStep> stream_together(StreamReader& reader, const Node& node,
                                   const std::function<std::optional<int>(size_t operand, int axis)>& axis_of);

/// What stands before a value's first element and behind its last one: a number; the elements inside, mirrored at the
/// first or the last one; or the first or the last one again. As the modes constant, reflect and edge of pad.
enum class PadMode : uint8_t { kConstant, kReflect, kEdge };

/// `begin` elements before a value and `end` behind it, `value` where the mode is constant; negative numbers are
/// cut off.
struct TimePads {
  int64_t begin = 0, end = 0;
  double value = 0;
  PadMode pad_mode = PadMode::kConstant;
};
/// Those of a pad node, along the axis of time; and of all its axes, with 0 for time.
struct NodePads {
  TimePads time;
  std::vector<int64_t> amounts;
  bool others = false;  ///< whether it pads another axis
};
Result<NodePads> pads_of(const StreamReader& reader, const Node& node, int axis);
/// Of input 0, with a constant; `write_rest` computes what the operator does beside time and gives the result, null:
/// nothing.
Result<StreamStep> stream_padded(StreamReader& reader, const Node& node, const TimePads& pads,
                                 std::function<Result<ValueId>(StreamWriter&, ValueId)> write_rest);
/// The same with elements of the value itself, of which there must be more than there are pads.
Result<StreamStep> stream_copied_pads(StreamReader& reader, const Node& node, const TimePads& pads,
                                      std::function<Result<ValueId>(StreamWriter&, ValueId)> write_rest);

}  // namespace pinnace
