// Operations that put elements elsewhere: concatenation, splitting, slices, repetition, padding.
#include <algorithm>

#include "base/dtype_code.h"
#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

/// slice of all axes by start and count, with steps that may be negative.
Result<ValueId> slice(Call& call, ValueId x, const std::vector<int64_t>& starts, const std::vector<int64_t>& counts,
                      const std::vector<int64_t>& steps) {
  std::vector<int64_t> ends, axes;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t end = starts[i] + counts[i] * steps[i];
    ends.push_back(counts[i] == 0 ? starts[i] : end < 0 ? INT64_MIN : end);
    axes.push_back(static_cast<int64_t>(i));
  }
  PINNACE_ASSIGN(ValueId start, call.constant_ints(starts));
  PINNACE_ASSIGN(ValueId end, call.constant_ints(ends));
  PINNACE_ASSIGN(ValueId axis, call.constant_ints(axes));
  PINNACE_ASSIGN(ValueId step, call.constant_ints(steps));
  return call.emit("slice", {x, start, end, axis, step});
}

/// Places of a mirrored axis that are kept as a list. One node, which the NNAPI back end has for integers too; a longer
/// list would take up to eight times the memory of the tensor.
constexpr int64_t kMostPlaces = 1 << 16;

/// `count` elements of axis d, from `first` towards the begin.
Result<ValueId> backwards(Call& call, ValueId x, size_t d, int64_t first, int64_t count) {
  PINNACE_ASSIGN(ValueId start, call.constant_ints({first}));
  PINNACE_ASSIGN(ValueId end, call.constant_ints({first < count ? INT64_MIN : first - count}));
  PINNACE_ASSIGN(ValueId axis, call.constant_ints({static_cast<int64_t>(d)}));
  PINNACE_ASSIGN(ValueId step, call.constant_ints({-1}));
  return call.emit("slice", {x, start, end, axis, step});
}

/// A list of one integer per dimension of x.
Result<std::vector<int64_t>> per_dimension(Call& call, size_t input, ValueId x) {
  PINNACE_ASSIGN(std::vector<int64_t> values, call.ints(input));
  if (values.size() != static_cast<size_t>(call.rank(x))) {
    return call.error("input ", input, " has ", values.size(), " elements, must have one per dimension of ",
                      call.type(x));
  }
  return values;
}

/// Pads as pad takes them: all beginnings, then all ends. None is negative.
Result<std::vector<int64_t>> read_pads(Call& call, ValueId x) {
  PINNACE_ASSIGN(std::vector<int64_t> pairs, call.ints(1));
  if (pairs.size() != 2 * static_cast<size_t>(call.rank(x))) {
    return call.error(pairs.size(), " pads for ", call.type(x));
  }
  std::vector<int64_t> pads(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] < 0) return call.error("pad ", pairs[i], " is negative");
    pads[i % 2 * pairs.size() / 2 + i / 2] = pairs[i];
  }
  return pads;
}

}  // namespace

Status map_concatenation(Call& call) {
  const size_t count = call.inputs() - 1;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < count; ++i) {
    PINNACE_ASSIGN(ValueId part, call.in(i));
    parts.push_back(part);
  }
  PINNACE_ASSIGN(int64_t axis, call.integer(count));
  if (axis < 0 || axis >= call.rank(parts[0]))
    return call.error("axis ", axis, " is outside rank ", call.rank(parts[0]));
  if (axis == 3 && std::all_of(parts.begin(), parts.end(), [&](ValueId p) { return call.channels_first(p) >= 0; })) {
    for (ValueId& part : parts) part = call.channels_first(part);
    PINNACE_ASSIGN(ValueId y, call.emit("concat", std::move(parts), {{"axis", int64_t{1}}}, call.declared()));
    PINNACE_ASSIGN(y, call.from_nchw(y));
    return call.finish(0, y);
  }
  PINNACE_ASSIGN(ValueId y, call.emit("concat", std::move(parts), {{"axis", axis}}, call.declared()));
  return call.finish(0, y);
}

Status map_split(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t axis, call.axis(1, call.rank(x)));
  PINNACE_ASSIGN(int64_t pieces, call.integer(2));
  PINNACE_ASSIGN(int64_t size, call.size(x, static_cast<int>(axis)));
  if (pieces != static_cast<int64_t>(call.outputs()) || size % pieces != 0) {
    return call.error(size, " elements in ", pieces, " pieces for ", call.outputs(), " outputs");
  }
  PINNACE_ASSIGN(auto made, call.emit_many("split", {x}, {{"axis", axis}}, static_cast<int>(pieces)));
  for (size_t i = 0; i < made.size(); ++i) PINNACE_TRY(call.finish(i, made[i]));
  return {};
}

Status map_pack(Call& call) {
  PINNACE_ASSIGN(int64_t axis, call.integer(0));
  std::vector<ValueId> parts;
  for (size_t i = 1; i < call.inputs(); ++i) {
    PINNACE_ASSIGN(ValueId part, call.in(i));
    if (axis < 0 || axis > call.rank(part)) return call.error("axis ", axis, " is outside ", call.type(part));
    PINNACE_ASSIGN(ValueId axes, call.constant_ints({axis}));
    PINNACE_ASSIGN(part, call.emit("unsqueeze", {part, axes}));
    parts.push_back(part);
  }
  PINNACE_ASSIGN(ValueId y, call.emit("concat", std::move(parts), {{"axis", axis}}, call.declared()));
  return call.finish(0, y);
}

// A dimension that data decides is checked by what it becomes.
Status map_slice(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> begins, per_dimension(call, 1, x));
  PINNACE_ASSIGN(std::vector<int64_t> sizes, per_dimension(call, 2, x));
  std::vector<int64_t> ends, axes;
  for (size_t i = 0; i < begins.size(); ++i) {
    const Dim dim = call.type(x).shape[i];
    if (dim.known() && sizes[i] == -1) sizes[i] = dim.size - begins[i];
    const bool rest = sizes[i] == -1;
    if (begins[i] < 0 || (sizes[i] < 0 && !rest) || (dim.known() && begins[i] + sizes[i] > dim.size)) {
      return call.error("dimension ", i, " of ", call.type(x), " has nothing from ", begins[i], " on for ", sizes[i]);
    }
    ends.push_back(rest ? INT64_MAX : begins[i] + sizes[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  PINNACE_ASSIGN(ValueId start, call.constant_ints(begins));
  PINNACE_ASSIGN(ValueId end, call.constant_ints(ends));
  PINNACE_ASSIGN(ValueId axis, call.constant_ints(axes));
  PINNACE_ASSIGN(ValueId y, call.emit("slice", {x, start, end, axis}));
  return call.finish(0, y);
}

Status map_strided_slice(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> begins, per_dimension(call, 1, x));
  PINNACE_ASSIGN(std::vector<int64_t> ends, per_dimension(call, 2, x));
  PINNACE_ASSIGN(std::vector<int64_t> steps, per_dimension(call, 3, x));
  int64_t masks[3];  // begin, end, shrink
  for (size_t i = 0; i < 3; ++i) {
    PINNACE_ASSIGN(masks[i], call.integer(4 + i));
  }
  std::vector<int64_t> counts, dims;
  for (size_t i = 0; i < begins.size(); ++i) {
    PINNACE_ASSIGN(int64_t n, call.size(x, static_cast<int>(i)));
    const int64_t step = steps[i], bit = int64_t{1} << i;
    if (step == 0) return call.error("stride 0 of dimension ", i);
    const bool forward = step > 0;
    const auto place = [&](int64_t at) {
      if (at < 0) at += n;
      return forward ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
    };
    const int64_t begin = masks[0] & bit ? (forward ? 0 : n - 1) : place(begins[i]);
    const bool shrunk = masks[2] & bit;
    if (shrunk && !forward) return call.error("dimension ", i, " is dropped, but its stride is ", step);
    const int64_t end = masks[1] & bit ? (forward ? n : -1) : place(ends[i]);
    const int64_t distance = forward ? end - begin : begin - end, stride = forward ? step : -step;
    counts.push_back(distance <= 0 ? 0 : (distance - 1) / stride + 1);
    if (shrunk && counts[i] != 1) return call.error("dimension ", i, " is dropped, but has ", counts[i], " elements");
    begins[i] = counts[i] ? begin : 0;
    if (!shrunk) dims.push_back(counts[i]);
  }
  PINNACE_ASSIGN(ValueId y, slice(call, x, begins, counts, steps));
  if (dims.size() != counts.size()) {
    if (dims.empty()) dims.push_back(1);
    PINNACE_ASSIGN(y, call.reshape(y, std::move(dims)));
  }
  return call.finish(0, y);
}

Status map_tile(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> multiples, per_dimension(call, 1, x));
  PINNACE_ASSIGN(ValueId repeats, call.constant_ints(multiples));
  PINNACE_ASSIGN(ValueId y, call.emit("tile", {x, repeats}));
  return call.finish(0, y);
}

Status map_reverse(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId axis_list, call.in(1));
  if (call.rank(axis_list) != 1 || call.rank(x) > 8) {
    return call.error("takes rank 8 or less and a list of one axis, was given ", call.type(x), " and ",
                      call.type(axis_list));
  }
  PINNACE_ASSIGN(int64_t axis, call.integer(1));
  if (axis < 0 || axis >= call.rank(x)) return call.error("axis ", axis, " is outside ", call.type(x));
  PINNACE_ASSIGN(ValueId start, call.constant_ints({-1}));
  PINNACE_ASSIGN(ValueId end, call.constant_ints({INT64_MIN}));
  PINNACE_ASSIGN(ValueId axes, call.constant_ints({axis}));
  PINNACE_ASSIGN(ValueId step, call.constant_ints({-1}));
  PINNACE_ASSIGN(ValueId y, call.emit("slice", {x, start, end, axes, step}));
  return call.finish(0, y);
}

Status map_pad(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> sizes, read_pads(call, x));
  const ValueId first = call.channels_first(x);
  if (first != kNoValue) sizes = {sizes[0], sizes[3], sizes[1], sizes[2], sizes[4], sizes[7], sizes[5], sizes[6]};
  PINNACE_ASSIGN(ValueId pads, call.constant_ints(sizes));
  std::vector<ValueId> operands = {first == kNoValue ? x : first, pads};
  if (call.op() == Op::PAD_V2) {
    PINNACE_ASSIGN(ValueId value, call.in(2));
    if (call.quantized(x)) {  // a stored integer
      PINNACE_ASSIGN(value, call.emit("cast", {value}, {{"to", std::string(dtype_code(call.type(x).dtype))}},
                                      call.type(x).quantization));
    }
    operands.push_back(value);
  }
  PINNACE_ASSIGN(ValueId y, call.emit("pad", std::move(operands)));
  if (first != kNoValue) {
    PINNACE_ASSIGN(y, call.from_nchw(y));
  }
  return call.finish(0, y);
}

// Mode symmetric repeats the edge, which our pad does not know: each padded axis is gathered by computed places, or,
// where these are many, what stands before and after x is cut out of it backwards.
Status map_mirror_pad(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> pads, read_pads(call, x));
  PINNACE_ASSIGN(int64_t mode, call.integer(2));
  if (mode != 0 && mode != 1) return call.error("mode ", mode, " is neither 0 nor 1");
  const size_t rank = pads.size() / 2;
  ValueId y = x;
  for (size_t d = 0; d < rank; ++d) {
    PINNACE_ASSIGN(int64_t n, call.size(x, static_cast<int>(d)));
    const int64_t before = pads[d], after = pads[rank + d], most = n - 1 + mode;
    if (before > most || after > most) {
      return call.error("pads ", before, " and ", after, " are more than ", most, " of dimension ", d);
    }
    if (before == 0 && after == 0) continue;
    if (before + n + after <= kMostPlaces) {
      std::vector<int64_t> places;
      for (int64_t i = -before; i < n + after; ++i) {
        places.push_back(i < 0 ? -i - mode : i >= n ? 2 * n - 2 - i + mode : i);
      }
      PINNACE_ASSIGN(ValueId indices, call.constant_ints(places));
      PINNACE_ASSIGN(y, call.emit("gather", {y, indices}, {{"axis", static_cast<int64_t>(d)}}));
      continue;
    }
    std::vector<ValueId> parts = {y};
    if (before > 0) {
      PINNACE_ASSIGN(ValueId part, backwards(call, y, d, before - mode, before));
      parts.insert(parts.begin(), part);
    }
    if (after > 0) {
      PINNACE_ASSIGN(ValueId part, backwards(call, y, d, n - 2 + mode, after));
      parts.push_back(part);
    }
    PINNACE_ASSIGN(y, call.emit("concat", std::move(parts), {{"axis", static_cast<int64_t>(d)}}));
  }
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
