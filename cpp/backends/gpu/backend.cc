// Targets, availability, verdicts and compilation of a GPU back end.
#include "backends/gpu/backend.h"

#include <charconv>

#include "backends/gpu/executable.h"

namespace pinnace::gpu {
namespace {

/// The number of a device: "" is 0. False if the text is none.
bool device_index(std::string_view variant, uint32_t* index) {
  *index = 0;
  if (variant.empty()) return true;
  const auto [end, problem] = std::from_chars(variant.data(), variant.data() + variant.size(), *index);
  return problem == std::errc() && end == variant.data() + variant.size();
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
    return str_cat(caps.name, ", ", caps.driver, caps.f16_storage ? ", fp16 storage" : "",
                   caps.unified_memory ? ", unified memory" : "");
  }

  /// Small networks run faster on many CPUs than on their GPU; only a measurement could tell.
  bool automatic() const override { return false; }

  Verdict supports(const NodeView& node, const TargetSpec& target) const override {
    if (target.precision == "bf16") return refusal(Rule::kPrecision, target.precision);
    return lower_alone(node);
  }

  Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const override {
    uint32_t index;
    if (!device_index(target.variant, &index)) return invalid(unknown_variant(target));
    auto context = Context::open(driver_, index);
    if (!context) return lost(context.status());
    auto fitted = fit_segment(segment, *context, target.precision == "fp16");
    auto made = fitted ? GpuExecutable::compile(std::move(*fitted), segment.packed, *context, driver_.name)
                       : Result<std::unique_ptr<Executable>>(fitted.status());
    if (made) return made;
    if (made.status().code() == Code::kDeviceLost) (*context)->lose();
    return lost(made.status());
  }

  /// Refuses nodes that this very device lacks something for, or gives wrong answers for.
  std::vector<Verdict> review(const Segment& segment, const TargetSpec& target, bool) const override {
    uint32_t index;
    if (!device_index(target.variant, &index)) return {};
    const auto context = Context::open(driver_, index);
    if (!context) return {};  // compile() says why
    auto fitted = fit_segment(segment, *context, target.precision == "fp16");
    if (!fitted || fitted->complete) return {};
    return std::move(fitted->verdicts);
  }

 private:
  /// What the device cannot do is done without it; memory and mistakes of the caller stay what they are.
  static Status lost(const Status& status) {
    if (status.code() != Code::kUnsupported && status.code() != Code::kOutOfMemory) return status;
    return Status(Code::kDeviceLost, status.message());
  }

  const Driver& driver_;
};

}  // namespace

const Backend* make_backend(const Driver& driver) {
  return new GpuBackend(driver);
}

}  // namespace pinnace::gpu
