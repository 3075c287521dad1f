// The search for parts that fit: along the first cut of a step that leads to such, each part as large as can be.
#include "backends/gpu/parts.h"

#include <algorithm>

#include "backends/gpu/cuts.h"

namespace pinnace::gpu {
namespace {

/// Of one dispatch, where it can be divided: 80 ms on a phone's GPU of 50 billion multiply-adds a second, so that a
/// list of it and others (kSliceWork in executable.cc) stays far below any watchdog.
constexpr double kPartWork = 4e9;
/// A step of more parts is refused: its dispatches alone would take a second.
constexpr size_t kMostParts = 16384;

/// Groups along a line may lie in any rows.
void fold(std::array<uint32_t, 3>& groups, const DeviceCaps& caps) {
  if (groups[0] <= caps.max_groups[0] && groups[1] <= caps.max_groups[1]) return;
  const uint64_t all = uint64_t{groups[0]} * groups[1], rows = (all + caps.max_groups[0] - 1) / caps.max_groups[0];
  if (rows > caps.max_groups[1]) return;
  groups = {static_cast<uint32_t>((all + rows - 1) / rows), static_cast<uint32_t>(rows), groups[2]};
}

bool fits(Step& step, const DeviceCaps& caps) {
  if (kernel_code(step.kernel.id, step.kernel.f16).linear) fold(step.groups, caps);
  for (const Extent& w : step.windows) {
    if (w.bytes > caps.max_binding_bytes) return false;
  }
  for (size_t d = 0; d < 3; ++d) {
    if (step.groups[d] > caps.max_groups[d]) return false;
  }
  return true;
}

bool aligned(const Step& step, const DeviceCaps& caps) {
  const size_t alignment = std::max<size_t>(16, caps.offset_alignment);
  return std::all_of(step.windows.begin(), step.windows.end(),
                     [&](const Extent& w) { return w.offset % alignment == 0 && w.bytes > 0; });
}

class Division {
 public:
  explicit Division(const DeviceCaps& caps) : caps_(caps) {}

  /// Adds the step, or parts of it, to `parts`; false if no cuts make it fit.
  bool divide(Step step, std::vector<Step>& parts) {
    const bool small = fits(step, caps_);
    if (small && step.work <= kPartWork) {
      parts.push_back(std::move(step));
      return parts.size() <= kMostParts;
    }
    const size_t before = parts.size();
    for (const Cut& cut : cuts_of(step)) {
      if (along(step, cut, parts)) return true;
      parts.resize(before);
    }
    if (small) parts.push_back(std::move(step));  // long, and whole
    return small;
  }

 private:
  Step part(const Step& step, const Cut& cut, int64_t first, int64_t count) const {
    Step made = step;
    cut.take(made, first, count);
    made.work = step.work * static_cast<double>(count) / static_cast<double>(cut.units);
    return made;
  }

  bool along(const Step& step, const Cut& cut, std::vector<Step>& parts) {
    // The fewest units after which all windows may begin.
    int64_t grain = 1;
    while (grain < cut.units && grain < 256 &&
           !aligned(part(step, cut, grain, std::min(grain, cut.units - grain)), caps_)) {
      grain *= 2;
    }
    if (grain >= cut.units || grain >= 256) return false;
    // The most of them that fit; one, to be divided further, if none do.
    int64_t few = 1, many = (cut.units - 1) / grain + 1;
    if (step.work > kPartWork) {
      const auto most = static_cast<int64_t>(kPartWork / step.work * static_cast<double>(cut.units));
      many = std::clamp<int64_t>(most / grain + 1, 2, many);
    }
    while (few + 1 < many) {
      const int64_t middle = few + (many - few) / 2;
      Step trial = part(step, cut, 0, middle * grain);
      (fits(trial, caps_) ? few : many) = middle;
    }
    const int64_t each = few * grain;
    for (int64_t first = 0; first < cut.units; first += each) {
      if (!divide(part(step, cut, first, std::min(each, cut.units - first)), parts)) return false;
    }
    return true;
  }

  const DeviceCaps& caps_;
};

}  // namespace

void divide_steps(LoweredSegment& lowered, const DeviceCaps& caps) {
  std::vector<Step> all;
  all.reserve(lowered.steps.size());
  for (Step& step : lowered.steps) {
    Step whole = step;
    for (TensorId id : whole.bindings) whole.windows.push_back({0, lowered.tensors[static_cast<size_t>(id)].bytes});
    const bool fitting = fits(whole, caps);
    if (fitting) step.groups = whole.groups;
    if (fitting && whole.work <= kPartWork) {
      all.push_back(std::move(step));
      continue;
    }
    std::vector<Step> parts;
    if (!Division(caps).divide(std::move(whole), parts) || parts.size() == 1) {
      all.push_back(std::move(step));
      continue;
    }
    for (Step& part : parts) all.push_back(std::move(part));
  }
  lowered.steps = std::move(all);
}

Verdict within_limits(const LoweredSegment& lowered, const Step& step, const DeviceCaps& caps) {
  const std::string_view kernel = kernel_code(step.kernel.id, step.kernel.f16).name;
  for (size_t b = 0; b < step.bindings.size(); ++b) {
    const size_t whole = lowered.tensors[static_cast<size_t>(step.bindings[b])].bytes;
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
