// Levels by the compiler's cpuid builtins; the name by /proc/cpuinfo.
#include "base/cpu_features.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/text.h"

namespace pinnace {
namespace {
constexpr std::string_view kNames[] = {"generic", "avx2", "avx512", "avx512_vnni"};
constexpr int kLevels = 4;
// What users call the baseline, and what the other architecture has.
#if defined(__x86_64__)
constexpr std::string_view kBaseline = "sse2", kHere = "x86-64", kKnown = "sse2 avx2 avx512 avx512_vnni";
constexpr std::string_view kElsewhere[] = {"neon", "neon_dotprod", "neon_i8mm", "sve"};
#else
constexpr std::string_view kBaseline = "neon", kHere = "ARM64", kKnown = "neon";
constexpr std::string_view kElsewhere[] = {"sse2", "avx2", "avx512", "avx512_vnni"};
#endif

Cpu choose() {
  Cpu best = Cpu::generic;
  for (int i = 0; i < kLevels; ++i) {
    if (cpu_runs(static_cast<Cpu>(i))) best = static_cast<Cpu>(i);
  }
  Cpu wanted;
  const char* forced = std::getenv("PINNACE_CPU_ISA");
  if (forced && cpu_level_from_name(forced, &wanted)) best = std::min(best, wanted);
  return best;
}
}  // namespace

std::string_view cpu_level_name(Cpu level) {
  return kNames[static_cast<int>(level)];
}

bool cpu_level_from_name(std::string_view name, Cpu* level) {
  for (int i = 0; i < kLevels; ++i) {
    if (kNames[i] == name || (i == 0 && name == kBaseline)) {
      *level = static_cast<Cpu>(i);
      return true;
    }
  }
  return false;
}

std::string cpu_level_problem(std::string_view name) {
  if (Cpu level; cpu_level_from_name(name, &level)) return {};
  const bool elsewhere = std::find(std::begin(kElsewhere), std::end(kElsewhere), name) != std::end(kElsewhere);
  return str_cat("'", name, "' is ", elsewhere ? "not an instruction set of " : "no instruction set known here; ",
                 elsewhere ? str_cat(kHere, ", which this build is for; it has ") : "this build has ", kKnown);
}

std::string cpu_isa_problem() {
  const char* forced = std::getenv("PINNACE_CPU_ISA");
  const std::string problem = forced ? cpu_level_problem(forced) : std::string();
  return problem.empty() ? problem : str_cat("PINNACE_CPU_ISA: ", problem);
}

bool cpu_runs(Cpu level) {
  if (level == Cpu::generic) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (level == Cpu::avx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (level == Cpu::avx512) return avx512;
  return avx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

Cpu cpu_level() {
  static const Cpu level = choose();
  return level;
}

std::string cpu_description() {
  std::string name = "unknown processor";
  if (FILE* info = std::fopen("/proc/cpuinfo", "r")) {
    char line[512];
    while (std::fgets(line, sizeof line, info)) {
      const std::string_view text(line);
      const size_t colon = text.find(": ");
      if (!text.starts_with("model name") || colon == std::string_view::npos) continue;
      name = text.substr(colon + 2, text.size() - colon - 3);
      break;
    }
    std::fclose(info);
  }
  return name;
}

}  // namespace pinnace
