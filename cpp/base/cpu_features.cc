// Levels by the compiler's cpuid builtins, or by what the kernel says in the auxiliary vector (/proc/cpuinfo is another
// machine's in emulation); the name by /proc/cpuinfo.
#include "base/cpu_features.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include "base/environment.h"
#include "base/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <linux/prctl.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace pinnace {
namespace {
constexpr std::string_view kNames[] = {"generic",      "avx2",        "avx_vnni", "avx512",
                                       "avx512_vnni",  "avx512_bf16", "amx_int8", "amx_bf16",
                                       "neon_dotprod", "neon_i8mm",   "sve"};
// Levels of this architecture above the baseline; what users call the baseline, and what the other architecture has.
#if defined(__x86_64__)
constexpr Cpu kInstructionSets[] = {Cpu::avx2,        Cpu::avx_vnni, Cpu::avx512,  Cpu::avx512_vnni,
                                    Cpu::avx512_bf16, Cpu::amx_int8, Cpu::amx_bf16};
constexpr std::string_view kBaseline = "sse2", kHere = "x86-64",
                           kKnown = "sse2 avx2 avx_vnni avx512 avx512_vnni avx512_bf16 amx_int8 amx_bf16";
constexpr std::string_view kElsewhere[] = {"neon", "neon_dotprod", "neon_i8mm", "sve"};
#else
constexpr Cpu kInstructionSets[] = {Cpu::neon_dotprod, Cpu::neon_i8mm, Cpu::sve};
constexpr std::string_view kBaseline = "neon", kHere = "ARM64", kKnown = "neon neon_dotprod neon_i8mm sve";
constexpr std::string_view kElsewhere[] = {"sse2",        "avx2",        "avx_vnni", "avx512",
                                           "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"};
#endif

#if defined(__x86_64__)
/// Bits of CPUID's leaf 7 that compilers' own functions do not know in all versions.
struct Leaf7 {
  bool avx_vnni = false, amx_tile = false, amx_int8 = false, amx_bf16 = false;
};
Leaf7 leaf_7() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Leaf7 has;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return has;
  const auto bit = [](unsigned word, unsigned i) { return (word >> i & 1) != 0; };
  has.amx_bf16 = bit(d, 22);
  has.amx_tile = bit(d, 24);
  has.amx_int8 = bit(d, 25);
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) has.avx_vnni = bit(a, 4);
  return has;
}

/// Asks once for the process, whose threads and children all have it then.
bool tiles_permitted() {
#if defined(__linux__)
  constexpr int kAskPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool permitted = syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
  return permitted;
#else
  return false;
#endif
}
#endif

Cpu choose() {
  Cpu wanted;
  const char* name = environment("PINNACE_CPU_ISA");
  const bool forced = name && cpu_isa_from_name(name, &wanted);
  Cpu best = Cpu::generic;
  for (const Cpu isa : kInstructionSets) {
    if (forced && isa > wanted) break;  // tiles are not asked for where nobody wants them
    if (cpu_runs(isa) && (forced || cpu_pays(isa))) best = isa;
  }
  return best;
}
}  // namespace

std::string_view kernel_isa_name(Cpu isa) {
  return kNames[static_cast<int>(isa)];
}

std::string_view cpu_isa_name(Cpu isa) {
  return isa == Cpu::generic ? kBaseline : kernel_isa_name(isa);
}

bool cpu_isa_from_name(std::string_view name, Cpu* isa) {
  if (name == kBaseline || name == kernel_isa_name(Cpu::generic)) {
    *isa = Cpu::generic;
    return true;
  }
  for (const Cpu known : kInstructionSets) {
    if (name != kernel_isa_name(known)) continue;
    *isa = known;
    return true;
  }
  return false;
}

bool arm64_isa_from_name(std::string_view name, Cpu* isa) {
  constexpr Cpu kArm64[] = {Cpu::neon_dotprod, Cpu::neon_i8mm, Cpu::sve};
  *isa = Cpu::generic;
  if (name == "neon") return true;
  for (const Cpu known : kArm64) {
    if (name != kernel_isa_name(known)) continue;
    *isa = known;
    return true;
  }
  return false;
}

std::string cpu_isa_name_problem(std::string_view name) {
  if (Cpu isa; cpu_isa_from_name(name, &isa)) return {};
  const bool elsewhere = std::find(std::begin(kElsewhere), std::end(kElsewhere), name) != std::end(kElsewhere);
  return str_cat("'", name, "' is ", elsewhere ? "not an instruction set of " : "no instruction set known here; ",
                 elsewhere ? str_cat(kHere, ", which this build is for; it has ") : "this build has ", kKnown);
}

std::string cpu_isa_problem() {
  const char* forced = environment("PINNACE_CPU_ISA");
  const std::string problem = forced ? cpu_isa_name_problem(forced) : std::string();
  return problem.empty() ? problem : str_cat("PINNACE_CPU_ISA: ", problem);
}

bool cpu_pays([[maybe_unused]] Cpu isa) {
#if defined(__x86_64__)
  if (isa == Cpu::avx512_bf16) {
    __builtin_cpu_init();
    return !__builtin_cpu_is("intel");
  }
#elif defined(__aarch64__) && defined(__linux__)
  constexpr int kNeonBytes = 16;
  if (isa == Cpu::sve) return (prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK) > kNeonBytes;
#endif
  return true;
}

bool cpu_includes(Cpu set, Cpu needed) {
  return needed <= set && (needed != Cpu::avx_vnni || set == Cpu::avx_vnni);
}

bool cpu_runs(Cpu isa) {
  if (isa == Cpu::generic) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (isa == Cpu::avx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (isa == Cpu::avx512) return avx512;
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (isa == Cpu::avx512_vnni) return vnni;
  const bool bf16 = vnni && __builtin_cpu_supports("avx512bf16");
  if (isa == Cpu::avx512_bf16) return bf16;
  if (isa == Cpu::avx_vnni) return avx2 && leaf_7().avx_vnni;
  if (isa != Cpu::amx_int8 && isa != Cpu::amx_bf16) return false;
  const bool int8 = bf16 && leaf_7().amx_tile && leaf_7().amx_int8;
  return int8 && (isa == Cpu::amx_int8 || leaf_7().amx_bf16) && tiles_permitted();
#elif defined(__aarch64__) && defined(__linux__)
  const unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
  const auto has = [](unsigned long bits, unsigned long wanted) { return (bits & wanted) == wanted; };
  const bool dotprod = has(one, HWCAP_ASIMDDP | HWCAP_FPHP | HWCAP_ASIMDHP);
  if (isa == Cpu::neon_dotprod) return dotprod;
  const bool i8mm = dotprod && has(two, HWCAP2_I8MM | HWCAP2_BF16);
  if (isa == Cpu::neon_i8mm) return i8mm;
  return isa == Cpu::sve && i8mm && has(one, HWCAP_SVE);
#else
  return false;
#endif
}

Cpu cpu_isa() {
  static const Cpu isa = choose();
  return isa;
}

std::string cpu_description() {
  // x86-64 has a name for people, ARM64 two numbers: who made the core, and which.
  std::string name, implementer, part;
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  if (const std::unique_ptr<FILE, Close> info{std::fopen("/proc/cpuinfo", "r")}) {
    char line[512];
    while (std::fgets(line, sizeof line, info.get())) {
      const std::string_view text(line);
      const size_t colon = text.find(": ");
      if (colon == std::string_view::npos) continue;
      const std::string_view value = text.substr(colon + 2, text.size() - colon - 3);
      if (text.starts_with("CPU implementer")) implementer = value;
      if (text.starts_with("CPU part")) part = value;
      if (!text.starts_with("model name")) continue;
      name = value;  // a name may be longer than a string holds without memory, of which there may be none
      break;
    }
  }
  if (name.empty() && !part.empty()) name = str_cat(kHere, " core ", implementer, "/", part);
  return name.empty() ? "unknown processor" : name;
}

}  // namespace pinnace
