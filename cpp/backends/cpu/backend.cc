// The CPU back end: takes every node that has reference code, runs it by the best kernel for this processor.
#include "backends/cpu/executable.h"
#include "backends/cpu/kernel.h"

namespace pinnace {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  std::string unknown_variant(const TargetSpec& target) const override {
    return target.variant.empty() ? std::string() : cpu_level_problem(target.variant);
  }

  std::string unavailable(const TargetSpec& target) const override {
    if (std::string problem = cpu_isa_problem(); !problem.empty()) return problem;
    Cpu level;
    if (target.variant.empty() || !cpu_level_from_name(target.variant, &level)) return unknown_variant(target);
    if (!cpu_runs(level)) return str_cat("this processor does not have ", target.variant);
    return {};
  }

  std::string description() const override {
    return str_cat(cpu_description(), ", ", cpu_level_name(cpu_level()), ", ", available_processors(), " processors");
  }

  Verdict supports(const NodeView& node, const TargetSpec& target) const override {
    Verdict verdict;
    if (!node.op().reference) {
      verdict.supported = false;
      verdict.rule = "C-1";
      verdict.text = "control flow is run by the runtime, its bodies by the back ends";
      return verdict;
    }
    if (target.precision != "fp32") {
      verdict.supported = false;
      verdict.rule = "C-2";
      verdict.text = "the CPU back end of this build computes in fp32";
      verdict.value = target.precision;
      return verdict;
    }
    const CpuKernelLine* line = choose_kernel(node, level_of(target));
    verdict.kernel = line ? line->name : "reference";
    return verdict;
  }

  /// For a stated level: what "cpu" alone stands for is not known before the file is opened.
  bool stores_payloads(const TargetSpec& target) const override { return !target.variant.empty(); }
  bool checks_constants() const override { return true; }

  Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const override {
    return compile_cpu(segment, level_of(target));
  }

 private:
  static Cpu level_of(const TargetSpec& target) {
    Cpu level = cpu_level();
    if (Cpu wanted; cpu_level_from_name(target.variant, &wanted)) level = wanted;
    return level;
  }
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend* const backend = new CpuBackend;  // never destroyed: no exit-time destructors
  return *backend;
}

}  // namespace pinnace
