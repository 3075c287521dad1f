// The NNAPI back end: targets, availability, verdicts per feature level, compilation.
#include "backends/nnapi/compile.h"
#include "backends/nnapi/cost.h"

namespace pinnace {
namespace nnapi_client {
namespace {

/// 1 to 8 for "27" to "31" and "fl1" to "fl8"; 0 for anything else.
int feature_level_of(std::string_view variant) {
  if (variant.size() == 3 && variant.starts_with("fl") && variant[2] >= '1' && variant[2] <= '8')
    return variant[2] - '0';
  for (int level = 1; level <= 5; ++level) {
    if (variant == str_cat(nnapi::feature_level_code(level))) return level;
  }
  return 0;
}

/// The level that a target means: the stated one, else that of this machine's device, else the newest.
int feature_level_of(const TargetSpec& target) {
  if (const int stated = feature_level_of(target.variant)) return stated;
  if (auto library = open_library(); library) {
    if (const auto device = choose_device(**library, 1, target.service.device)) return device->feature_level;
  }
  return nnapi::kNewestFeatureLevel;
}

class NnapiBackend final : public Backend {
 public:
  std::string_view name() const override { return "nnapi"; }

  std::string unknown_variant(const TargetSpec& target) const override {
    if (target.variant.empty() || feature_level_of(target.variant)) return {};
    return str_cat("'", target.variant, "' is no feature level: 27 to 31 or fl1 to fl8");
  }

  std::string unavailable(const TargetSpec& target) const override {
    const auto library = open_library();
    if (!library) return library.status().message();
    const auto device = choose_device(**library, std::max(1, feature_level_of(target.variant)), target.service.device);
    return device ? std::string() : device.status().message();
  }

  std::string description() const override {
    const auto library = open_library();
    if (!library) return library.status().message();
    const auto device = choose_device(**library, 1);
    if (!device) return device.status().message();
    return str_cat(device->name, " ", device->version, ", feature level ", device->feature_level, ", ",
                   (*library)->path);
  }

  /// Off Android the library is our own, whose device is the CPU back end.
  bool automatic() const override {
#if defined(__ANDROID__)
    return true;
#else
    return false;
#endif
  }

  bool takes_control_flow() const override { return true; }

  Verdict supports(const NodeView& node, const TargetSpec& target) const override {
    if (target.precision == "bf16") return refusal(Rule::kPrecision, target.precision);
    return lower_alone(node, feature_level_of(target));
  }

  std::vector<Verdict> review(const Segment& segment, const TargetSpec& target, bool elsewhere) const override {
    if (segment.inputs.empty()) {
      return std::vector<Verdict>(segment.nodes.size(),
                                  refusal(Rule::kNoInputs, str_cat(segment.nodes.size(), " nodes")));
    }
    const int level = feature_level_of(target);
    const auto options = DriverOptions::of(target, level);
    if (!options) return {};  // compile() says so
    if (target.automatic && elsewhere && !options->any_work) {
      if (auto verdicts = too_little_work(segment); !verdicts.empty()) return verdicts;
    }
    if (level < 3 || target.storing) return {};
    auto library = open_library();
    if (!library) return {};
    auto device = choose_device(**library, level, target.service.device);
    if (!device) return {};
    return ask_device(segment, *library, *device, *options);
  }

  Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const override {
    const int level = feature_level_of(target);
    if (target.storing) return store_segment(segment, DriverOptions{.feature_level = level});
    auto library = open_library();
    if (!library) return Status(Code::kDeviceLost, library.status().message());
    auto device = choose_device(**library, level, target.service.device);
    if (!device) return Status(Code::kDeviceLost, device.status().message());
    PINNACE_ASSIGN(const DriverOptions options, DriverOptions::of(target, level));
    return compile_segment(segment, *library, *device, options);
  }

  std::string unused(const TargetSpec& target) const override {
    const int level = feature_level_of(target);
    if (level >= 4)
      return unused_members(name(), target.service, {"preference", "priority", "deadline", "cache_folder", "device"});
    const std::string who = str_cat("nnapi at feature level ", level);
    if (level == 3) return unused_members(who, target.service, {"preference", "cache_folder", "device"});
    const auto library = open_library();  // one of a later level lists its devices to models of an earlier one too
    const bool lists = library && (*library)->feature_level >= 3;
    return unused_members(who, target.service, {"preference", lists ? "device" : "preference"});
  }

  bool stores_payloads(const TargetSpec& target) const override { return feature_level_of(target.variant) > 0; }
  bool checks_constants() const override { return true; }
};

}  // namespace
}  // namespace nnapi_client

const Backend& nnapi_backend() {
  static const nnapi_client::NnapiBackend* const backend = new nnapi_client::NnapiBackend;  // never destroyed
  return *backend;
}

}  // namespace pinnace
