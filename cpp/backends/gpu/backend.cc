// Targets, availability, verdicts and compilation of a GPU back end.
#include "backends/gpu/backend.h"

#include <algorithm>
#include <charconv>

#include "backends/gpu/executable.h"
#include "backends/packed_constants.h"
#include "base/environment.h"

namespace pinnace::gpu {
namespace {

/// The number of a device: "" is 0. False if the text is none.
bool device_index(std::string_view variant, uint32_t* index) {
  *index = 0;
  if (variant.empty()) return true;
  const auto [end, problem] = std::from_chars(variant.data(), variant.data() + variant.size(), *index);
  return problem == std::errc() && end == variant.data() + variant.size();
}

/// The cost of a boundary between the CPU and a device: copies through host memory, a submit with its wait, and what a
/// middling CPU does in that time. Estimates; with and without the device the whole is measured afterwards.
constexpr double kCopyRate = 5e9, kSubmitSeconds = 1e-4, kCpuRate = 5e10;

/// Why a part of a graph is better left to the CPU; empty if it pays, or is all that runs.
std::string unpaid(const Segment& segment, const LoweredSegment& lowered) {
  const auto& computed = segment.type_inference.computed;
  const auto running = std::count(computed.begin(), computed.end(), false);
  if (static_cast<ptrdiff_t>(segment.nodes.size()) == running) return {};
  double work = 0, bytes = 0;
  for (const Step& step : lowered.steps) work += step.work;
  for (const auto* values : {&segment.inputs, &segment.outputs}) {
    for (ValueId id : *values) bytes += 4.0 * static_cast<double>(segment.type_inference.types[id].elements());
  }
  if (work / kCpuRate > kSubmitSeconds + bytes / kCopyRate) return {};
  return str_cat(static_cast<int64_t>(work), " multiply-adds for ", static_cast<int64_t>(bytes), " bytes");
}

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(const Driver& driver) : driver_(driver) {}
  std::string_view name() const override { return driver_.name; }

  std::string unknown_variant(const TargetSpec& target) const override {
    uint32_t index;
    if (device_index(target.variant, &index)) return {};
    return str_cat("'", target.variant, "' is no number of a device");
  }

  std::string unavailable(const TargetSpec& target) const override {
    uint32_t index;
    if (!device_index(target.variant, &index)) return unknown_variant(target);
    return driver_.unavailable(index);
  }

  std::string description() const override {
    if (std::string problem = driver_.unavailable(0); !problem.empty()) return problem;
    const auto context = Context::open(driver_, 0);
    if (!context) return context.status().message();
    const DeviceCaps& caps = (*context)->caps();
    return str_cat(caps.name, ", ", caps.driver, caps.software ? ", software" : "",
                   caps.f16_storage ? ", fp16 storage" : "", caps.simdgroup_matrices ? ", simdgroup matrices" : "",
                   caps.unified_memory ? ", unified memory" : "");
  }

  /// Small networks run faster on many CPUs than on their GPU; only a measurement can tell.
  bool automatic() const override { return false; }
  bool measured() const override { return !driver_.emulated; }
  bool reopens() const override { return true; }

  Result<std::string> signs_of_device() const override {
    if (!driver_.signs) return std::string();
    const char* given = environment("PINNACE_GPU_OPTIONS");
    const auto options = options_from_environment();
    std::string found = driver_.signs();
    // measured_device() says what is wrong with the options.
    if (options && !options->measure_software && found.empty()) {
      return unsupported("this machine has no device file of a GPU");
    }
    return str_cat(found, "/", kernels_hash(), given ? " " : "", given ? given : "");
  }

  Result<std::string> measured_device(const TargetSpec& target) const override {
    uint32_t index;
    if (!device_index(target.variant, &index)) return invalid(unknown_variant(target));
    if (const std::string problem = driver_.unavailable(index); !problem.empty()) return unsupported(problem);
    PINNACE_ASSIGN(const DeviceOptions options, options_from_environment());
    DeviceCaps caps;
    if (driver_.look) {
      caps = driver_.look(index);
    } else {
      PINNACE_ASSIGN(const auto context, Context::open(driver_, index));
      caps = context->caps();
    }
    if (caps.software && !options.measure_software)
      return unsupported("its device, ", caps.name, ", is this processor");
    const char* given = environment("PINNACE_GPU_OPTIONS");
    return str_cat(caps.identity, "/", kernels_hash(), given ? " " : "", given ? given : "");
  }

  Verdict supports(const NodeView& node, const TargetSpec& target) const override {
    if (target.precision == "bf16") return refusal(Rule::kPrecision, target.precision);
    return lower_alone(node);
  }

  Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const override {
    uint32_t index;
    if (!device_index(target.variant, &index)) return invalid(unknown_variant(target));
    // In a forked child, whose devices are all lost: the runtime makes another store then.
    if (segment.packed.left_behind()) return device_lost(driver_.name);
    PINNACE_ASSIGN(const auto store, WeightStore::of(segment.packed, driver_.name));
    PINNACE_ASSIGN(const bool gone, store->lost());
    if (gone) return device_lost(driver_.name);
    auto context = Context::open(driver_, index);
    if (!context) return without_device(context.status());
    auto fitted = fit_segment(segment, *context, target.precision == "fp16");
    auto made = fitted ? GpuExecutable::compile(std::move(*fitted), segment, *context, driver_.name)
                       : Result<std::unique_ptr<Executable>>(fitted.status());
    if (made) return made;
    if (made.status().code() == Code::kDeviceLost) (*context)->lose();
    return without_device(made.status());
  }

  /// Refuses nodes that this very device lacks something for, or gives wrong answers for; of "auto" also parts of a
  /// graph whose work does not pay for what is copied.
  std::vector<Verdict> review(const Segment& segment, const TargetSpec& target, bool elsewhere) const override {
    uint32_t index;
    if (!device_index(target.variant, &index)) return {};
    const auto store = WeightStore::of(segment.packed, driver_.name);
    if (!store) return {};  // compile() says why, as for a lost device and for none
    const auto gone = (*store)->lost();
    if (!gone || *gone) return {};
    const auto context = Context::open(driver_, index);
    if (!context) return {};
    if (!(*store)->hold(*context).ok()) return {};  // compile() is to find it open
    auto fitted = fit_segment(segment, *context, target.precision == "fp16");
    if (!fitted) return {};
    if (!fitted->complete) return std::move(fitted->verdicts);
    if (!target.automatic || !elsewhere) return {};
    const std::string cost = unpaid(segment, fitted->lowered);
    if (cost.empty()) return {};
    return std::vector<Verdict>(segment.nodes.size(), refusal(Rule::kUnpaid, cost));
  }

 private:
  const Driver& driver_;
};

}  // namespace

const Backend* make_backend(const Driver& driver) {
  return new GpuBackend(driver);
}

}  // namespace pinnace::gpu
