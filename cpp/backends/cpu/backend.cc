// The CPU back end: takes every node that has reference code, runs it by the best kernel for this processor.
#include "backends/cpu/kernel.h"
#include "backends/cpu/plan/executable.h"
#include "base/threads/processors.h"

namespace pinnace {
namespace cpu {
namespace {

/// True if the target is an instruction set of ARM64 for which this build, of another architecture, can pack weights.
bool packs_for_arm64(const TargetSpec& target, Cpu* isa) {
#if defined(PINNACE_PACKS_ARM64)
  return arm64_isa_from_name(target.variant, isa);
#else
  return static_cast<void>(target), static_cast<void>(isa), false;
#endif
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  std::string unknown_variant(const TargetSpec& target) const override {
    if (Cpu isa; target.variant.empty() || packs_for_arm64(target, &isa)) return {};
    return cpu_isa_name_problem(target.variant);
  }

  std::string unavailable(const TargetSpec& target) const override {
    if (std::string problem = cpu_isa_problem(); !problem.empty()) return problem;
    Cpu isa;
    if (target.variant.empty()) return {};
    if (!cpu_isa_from_name(target.variant, &isa)) return cpu_isa_name_problem(target.variant);
    if (!cpu_runs(isa)) return str_cat("this processor does not have ", target.variant);
    return {};
  }

  std::string description() const override {
    return str_cat(cpu_description(), ", ", kernel_isa_name(cpu_isa()), ", ", available_processors(), " processors");
  }

  Verdict supports(const NodeView& node, const TargetSpec& target) const override {
    Verdict verdict;
    const CpuKernelLine* line = choose_kernel(node, mode_of(target));
    verdict.kernel = line ? line->name : kReferenceCode;
    return verdict;
  }

  std::string unused(const TargetSpec& target) const override {
    const std::string& wish = target.service.preference;
    if (wish == "sustained_speed") return unused_members(name(), target.service, {"processors"});
    std::string sentence = unused_members(name(), target.service, {"preference", "processors"});
    if (wish == "low_power" && target.service.processors.empty() && !Processors::slowest().known()) {
      sentence += str_cat(sentence.empty() ? "" : "; ",
                          "low_power keeps workers asleep between loops and chooses no "
                          "processors: all that the process may use are of one kind");
    }
    return sentence;
  }

  /// For a stated instruction set: what "cpu" alone stands for is not known before the file is opened.
  bool stores_payloads(const TargetSpec& target) const override { return !target.variant.empty(); }
  bool checks_constants() const override { return true; }

  /// What multiplies the most in the same time: bfloat16 on tiles or by dot products of pairs, halves on ARM64.
  std::string_view fastest_precision(const TargetSpec& target) const override {
    const Cpu set = mode_of(target).instruction_set;
    if (cpu_includes(set, Cpu::amx_bf16)) return "bf16";
    if (cpu_includes(set, Cpu::avx512_bf16) && cpu_pays(Cpu::avx512_bf16)) return "bf16";
    return set >= Cpu::neon_dotprod ? "fp16" : "fp32";
  }

  Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const override {
    return compile_cpu(segment, mode_of(target));
  }

 private:
  static CpuMode mode_of(const TargetSpec& target) {
    CpuMode mode{cpu_isa()};
    mode.shape_invariant = target.shape_invariant;
    if (Cpu wanted; cpu_isa_from_name(target.variant, &wanted)) {
      mode.instruction_set = wanted;
    } else if (packs_for_arm64(target, &wanted)) {
      mode.instruction_set = wanted;
      mode.for_arm64 = true;
    }
    if (target.precision == "fp16") mode.precision = Precision::kFp16;
    if (target.precision == "bf16") mode.precision = Precision::kBf16;
    return mode;
  }
};

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::CpuBackend* const backend = new cpu::CpuBackend;  // never destroyed: no exit-time destructors
  return *backend;
}

}  // namespace pinnace
