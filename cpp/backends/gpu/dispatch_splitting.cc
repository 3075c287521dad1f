// The search for sub-dispatches that fit: along the first split of a step that leads to such, each as large as can be.
// Windows that may not begin where they would, and elements that do not lie together, are copied to memory of their own
// and back.
#include "backends/gpu/dispatch_splitting.h"

#include <algorithm>

#include "backends/gpu/move/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu {
namespace {

/// Of one dispatch, where it can be divided: 80 ms on a phone's GPU of 50 billion multiply-adds a second, so that a
/// list of it and others (kSliceWork in executable.cc) stays far below any watchdog.
constexpr double kMostWork = 4e9;
/// A step of more parts is refused: its dispatches alone would take a second.
constexpr size_t kMostParts = 16384;

/// Groups along a line may lie in any rows.
void fold(std::array<uint32_t, 3>& groups, const DeviceCaps& caps) {
  if (groups[0] <= caps.max_groups[0] && groups[1] <= caps.max_groups[1]) return;
  const uint64_t all = uint64_t{groups[0]} * groups[1], rows = (all + caps.max_groups[0] - 1) / caps.max_groups[0];
  if (rows > caps.max_groups[1]) return;
  groups = {static_cast<uint32_t>((all + rows - 1) / rows), static_cast<uint32_t>(rows), groups[2]};
}

/// Kernels may load and store four elements at once: windows are whole blocks of 16.
size_t blocks_of(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/// What a step asks for that devices limit.
struct Needs {
  std::vector<size_t> windows;
  std::array<uint32_t, 3> groups;

  Needs(Step& step, const DeviceCaps& caps) {
    if (kernel_code(step.kernel.id, step.kernel.f16).linear) fold(step.groups, caps);
    groups = step.groups;
    for (const Extent& w : step.windows) windows.push_back(blocks_of(w.bytes));
  }
  bool within(const DeviceCaps& caps) const {
    for (const size_t bytes : windows) {
      if (bytes > caps.max_binding_bytes) return false;
    }
    return groups[0] <= caps.max_groups[0] && groups[1] <= caps.max_groups[1] && groups[2] <= caps.max_groups[2];
  }
  /// Within what the device has, or where that cannot be, as little as `least` has.
  bool within(const DeviceCaps& caps, const Needs& least) const {
    for (size_t b = 0; b < windows.size(); ++b) {
      if (windows[b] > std::max<size_t>(caps.max_binding_bytes, least.windows[b])) return false;
    }
    for (size_t d = 0; d < 3; ++d) {
      if (groups[d] > std::max(caps.max_groups[d], least.groups[d])) return false;
    }
    return true;
  }
  /// Whether `least` has less of something that the device has too little of.
  bool gains(const DeviceCaps& caps, const Needs& least) const {
    bool any = false;
    for (size_t b = 0; b < windows.size(); ++b) {
      any |= windows[b] > caps.max_binding_bytes && least.windows[b] < windows[b];
    }
    for (size_t d = 0; d < 3; ++d) any |= groups[d] > caps.max_groups[d] && least.groups[d] < groups[d];
    return any;
  }
};

class DispatchSplitter {
 public:
  DispatchSplitter(LoweredSegment& lowered, const DeviceCaps& caps) : lowered_(lowered), caps_(caps) {}

  /// The sub-dispatches of the step; empty if no splits make it fit.
  std::vector<Step> split(Step step) {
    free_.clear();
    parts_.clear();
    if (!divide(std::move(step), true)) parts_.clear();
    return std::move(parts_);
  }

 private:
  struct Scratch {
    TensorId tensor;
    size_t bytes;
  };

  /// copies: sub-dispatches may work on copies, where there are no others.
  bool divide(Step step, bool copies) {
    const Needs needs(step, caps_);
    const bool small = needs.within(caps_);
    if (small && step.work <= kMostWork) return emit(std::move(step));
    if (search(step, needs, small, false)) return true;
    if (small) return emit(std::move(step));  // long, and whole
    return copies && search(step, needs, false, true);
  }

  bool search(const Step& step, const Needs& needs, bool small, bool copies) {
    // Before all, what leaves nothing to be split otherwise; last, what gains nothing, where only single units of the
    // outermost dimension can be split further.
    enum Gain { kAll, kSome, kNothing };
    const std::vector<Split> splits = splits_of(step);
    const size_t before = parts_.size();
    for (const Gain gain : {kAll, kSome, kNothing}) {
      if (small && gain == kNothing) break;
      for (const Split& split : splits) {
        if ((split.copies && !copies) || (gain == kNothing && &split != &splits.front())) continue;
        SubDispatch unit = part(step, split, 0, 1);
        const Needs least(unit, caps_);
        const bool some = small || needs.gains(caps_, least);
        if (gain != (least.within(caps_) ? kAll : some ? kSome : kNothing)) continue;
        if (along(step, split, least, copies, gain == kNothing)) return true;
        parts_.resize(before);
      }
    }
    return false;
  }

  SubDispatch part(const Step& step, const Split& split, int64_t first, int64_t count) const {
    SubDispatch made{step, std::vector<BindingView>(step.bindings.size())};
    split.take(made, first, count);
    made.work = step.work * static_cast<double>(count) / static_cast<double>(split.units);
    return made;
  }

  bool may_begin(size_t offset) const { return offset % std::max<size_t>(16, caps_.offset_alignment) == 0; }
  bool aligned(const SubDispatch& made) const {
    return std::all_of(made.windows.begin(), made.windows.end(),
                       [&](const Extent& w) { return may_begin(w.offset) && w.bytes > 0; });
  }

  bool along(const Step& step, const Split& split, const Needs& least, bool copies, bool single) {
    // The fewest units after which all windows may begin; with copies they may begin anywhere.
    int64_t grain = 1;
    while (!copies && grain < split.units && grain < 256 &&
           !aligned(part(step, split, grain, std::min(grain, split.units - grain)))) {
      grain *= 2;
    }
    if (grain >= split.units || grain >= 256) return false;
    // The most of them that fit; one, to be divided further, if none do.
    int64_t few = 1, many = (split.units - 1) / grain + 1;
    if (step.work > kMostWork) {
      const auto most = static_cast<int64_t>(kMostWork / step.work * static_cast<double>(split.units));
      many = std::clamp<int64_t>(most / grain + 1, 2, many);
    }
    while (!single && few + 1 < many) {
      const int64_t middle = few + (many - few) / 2;
      SubDispatch trial = part(step, split, 0, middle * grain);
      (Needs(trial, caps_).within(caps_, least) ? few : many) = middle;
    }
    const int64_t each = few * grain;
    for (int64_t first = 0; first < split.units; first += each) {
      if (!make(step, part(step, split, first, std::min(each, split.units - first)), copies)) return false;
    }
    return true;
  }

  /// Divides what remains of a part, between copies of what it cannot bind as it lies.
  bool make(const Step& step, SubDispatch made, bool copies) {
    const uint32_t written = kernel_code(step.kernel.id, step.kernel.f16).written;
    std::vector<Scratch> held;
    std::vector<Step> after;
    for (size_t b = 0; b < made.windows.size(); ++b) {
      const BindingView& view = made.views[b];
      const Extent window = made.windows[b];
      if (!view.region && may_begin(window.offset) && window.bytes > 0) continue;
      const bool result = (written >> b & 1) != 0;
      if (window.bytes == 0 || window.bytes % 2 != 0 || (result && !view.region && !view.own)) return false;
      StridedRegion of;
      if (view.region) {
        of = *view.region;
      } else {
        of.from = static_cast<int64_t>(window.offset);
        of.bytes = window.offset % 4 == 0 && window.bytes % 4 == 0 ? 4 : 2;
        of.size[5] = static_cast<int64_t>(window.bytes) / of.bytes;
        of.stride[5] = of.bytes;
      }
      const TensorId tensor = made.bindings[b];
      held.push_back(scratch(window.bytes));
      made.bindings[b] = held.back().tensor;
      made.windows[b] = {0, window.bytes};
      if (result) {
        after.push_back(copy(made, tensor, of, held.back().tensor, false));
      } else if (!divide(copy(made, tensor, of, held.back().tensor, true), false)) {
        return false;
      }
    }
    if (!divide(static_cast<Step&&>(made), copies)) return false;
    for (Step& back : after) {
      if (!divide(std::move(back), false)) return false;
    }
    free_.insert(free_.end(), held.begin(), held.end());
    return true;
  }

  /// Memory that no other part uses at the same time. What parts of a step have had one after the other is the same.
  Scratch scratch(size_t bytes) {
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [&](const Scratch& s) { return s.bytes >= bytes && s.bytes / 2 <= bytes; });
    if (found != free_.end()) {
      const Scratch taken = *found;
      free_.erase(found);
      return taken;
    }
    lowered_.tensors.push_back({DeviceTensor::Place::kActivation, 0, std::max<size_t>(16, blocks_of(bytes))});
    return {static_cast<TensorId>(lowered_.tensors.size() - 1), bytes};
  }

  /// Between a region of a tensor and its dense copy, in int32, or where these do not do, in elements of 16 bits.
  Step copy(const Step& of, TensorId tensor, StridedRegion region, TensorId dense, bool to_dense) const {
    if (region.bytes > 4) {  // vectors, which lie together
      region.size[5] *= region.bytes / 4;
      region.stride[5] = region.bytes = 4;
    }
    const int64_t bytes = region.bytes;
    int64_t reach = 1, inner = 1;  // in elements, from the first to behind the last
    MoveParams params{.count = region.count()};
    auto &in_tensor = to_dense ? params.from_strides : params.to_strides,
         &in_dense = to_dense ? params.to_strides : params.from_strides;
    for (size_t d = 6; d-- > 0; inner *= region.size[d]) {
      if (d > 0) params.sizes[d - 1] = region.size[d];
      in_dense[d] = inner;
      in_tensor[d] = region.stride[d] / bytes;
      reach += (region.size[d] - 1) * (region.stride[d] / bytes);
    }
    Step made{{bytes == 4 ? KernelId::move_int32 : KernelId::move, bytes == 2, {}},
              PushBytes(params).copy(),
              {to_dense ? tensor : dense, to_dense ? dense : tensor},
              line_groups(region.count(), 64),
              of.node,
              static_cast<double>(region.count())};
    made.windows.resize(2);
    const size_t lies = to_dense ? 0 : 1;
    made.windows[lies] = {0, lowered_.tensors[static_cast<size_t>(tensor)].bytes};
    made.windows[1 - lies] = {0, static_cast<size_t>(region.count() * bytes)};
    splitting::begin_at(made, lies, to_dense ? PINNACE_FIELD(MoveParams, from) : PINNACE_FIELD(MoveParams, to),
                        region.from / bytes, reach, bytes);
    return made;
  }

  bool emit(Step step) {
    for (size_t b = 0; b < step.windows.size(); ++b) {
      Extent& w = step.windows[b];
      w.bytes = std::min(blocks_of(w.bytes), lowered_.tensors[static_cast<size_t>(step.bindings[b])].bytes - w.offset);
    }
    parts_.push_back(std::move(step));
    return parts_.size() <= kMostParts;
  }

  LoweredSegment& lowered_;
  const DeviceCaps& caps_;
  std::vector<Step> parts_;
  std::vector<Scratch> free_;
};

}  // namespace

void split_dispatches(LoweredSegment& lowered, const DeviceCaps& caps) {
  std::vector<Step> all;
  all.reserve(lowered.steps.size());
  DispatchSplitter splitter(lowered, caps);
  for (Step& step : lowered.steps) {
    Step whole = step;
    for (TensorId id : whole.bindings) whole.windows.push_back({0, lowered.tensors[static_cast<size_t>(id)].bytes});
    const bool fitting = Needs(whole, caps).within(caps);
    if (fitting) step.groups = whole.groups;
    if (fitting && whole.work <= kMostWork) {
      all.push_back(std::move(step));
      continue;
    }
    std::vector<Step> parts = splitter.split(std::move(whole));
    if (parts.size() < 2) {
      all.push_back(std::move(step));
      continue;
    }
    for (Step& part : parts) all.push_back(std::move(part));
  }
  lowered.steps = std::move(all);
}

Verdict within_limits(const LoweredSegment& lowered, const Step& step, const DeviceCaps& caps) {
  const std::string_view kernel = kernel_code(step.kernel.id, step.kernel.f16).name;
  if (static_cast<uint64_t>(step.turns) > caps.max_turns) {
    return refusal(Rule::kDeviceLimit, str_cat("kernel ", kernel, " needs ", step.turns,
                                               " loop turns of an invocation, it has ", caps.max_turns));
  }
  for (size_t b = 0; b < step.bindings.size(); ++b) {
    const size_t whole = lowered.tensors[static_cast<size_t>(step.bindings[b])].bytes;
    if (whole > caps.max_buffer_bytes) {
      return refusal(Rule::kDeviceLimit, str_cat("kernel ", kernel, " needs a tensor of ", whole,
                                                 " bytes, its buffers have ", caps.max_buffer_bytes));
    }
    const size_t bytes = step.windows.empty() ? whole : step.windows[b].bytes;
    if (bytes <= caps.max_binding_bytes) continue;
    return refusal(Rule::kDeviceLimit, str_cat("kernel ", kernel, " needs a tensor of ", bytes,
                                               " bytes as a whole, it binds ", caps.max_binding_bytes));
  }
  for (size_t d = 0; d < 3; ++d) {
    if (step.groups[d] <= caps.max_groups[d]) continue;
    return refusal(Rule::kDeviceLimit, str_cat("kernel ", kernel, " has ", step.groups[d], " groups on axis ", d,
                                               ", it takes ", caps.max_groups[d]));
  }
  return {};
}

}  // namespace pinnace::gpu
