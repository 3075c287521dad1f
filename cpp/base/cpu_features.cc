// Instruction sets by the compiler's cpuid builtins, or by what the kernel says in the auxiliary vector (/proc/cpuinfo
// is another machine's in emulation); the name by /proc/cpuinfo.
#include "base/cpu_features.h"

#include <cstdio>
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
enum class Architecture : uint8_t { any, x86_64, arm64 };
#if defined(__x86_64__)
constexpr Architecture kHere = Architecture::x86_64;
constexpr std::string_view kBaseline = "sse2", kHereName = "x86-64", kOtherBaseline = "neon";
#else
constexpr Architecture kHere = Architecture::arm64;
constexpr std::string_view kBaseline = "neon", kHereName = "ARM64", kOtherBaseline = "sse2";
#endif

struct InstructionSet {
  Cpu cpu;
  Architecture architecture;
  std::string_view name;
};
constexpr InstructionSet kInstructionSets[] = {
#define ISA(name, architecture, has) {Cpu::name, Architecture::architecture, #name},
#include "base/instruction_sets.inc"
#undef ISA
};

/// The set of that name above the baseline of an architecture; null: it has none.
const InstructionSet* find_set(std::string_view name, Architecture architecture) {
  for (const InstructionSet& set : kInstructionSets) {
    if (set.architecture == architecture && set.name == name) return &set;
  }
  return nullptr;
}

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
  for (const InstructionSet& set : kInstructionSets) {
    if (forced && set.cpu > wanted) break;  // tiles are not asked for where nobody wants them
    if (set.architecture == kHere && cpu_runs(set.cpu) && (forced || cpu_pays(set.cpu))) best = set.cpu;
  }
  return best;
}
}  // namespace

std::string_view kernel_isa_name(Cpu isa) {
  return kInstructionSets[static_cast<int>(isa)].name;
}

std::string_view cpu_isa_name(Cpu isa) {
  return isa == Cpu::generic ? kBaseline : kernel_isa_name(isa);
}

bool cpu_isa_from_name(std::string_view name, Cpu* isa) {
  *isa = Cpu::generic;
  if (name == kBaseline || name == kernel_isa_name(Cpu::generic)) return true;
  const InstructionSet* set = find_set(name, kHere);
  if (set) *isa = set->cpu;
  return set != nullptr;
}

bool arm64_isa_from_name(std::string_view name, Cpu* isa) {
  *isa = Cpu::generic;
  if (name == "neon") return true;
  const InstructionSet* set = find_set(name, Architecture::arm64);
  if (set) *isa = set->cpu;
  return set != nullptr;
}

std::string cpu_isa_name_problem(std::string_view name) {
  if (Cpu isa; cpu_isa_from_name(name, &isa)) return {};
  std::string known(kBaseline);
  bool elsewhere = name == kOtherBaseline;
  for (const InstructionSet& set : kInstructionSets) {
    if (set.architecture == kHere) known += str_cat(" ", set.name);
    elsewhere = elsewhere || (set.architecture != Architecture::any && set.name == name);
  }
  return str_cat("'", name, "' is ", elsewhere ? "not an instruction set of " : "no instruction set known here; ",
                 elsewhere ? str_cat(kHereName, ", which this build is for; it has ") : "this build has ", known);
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
  // Another architecture's: not one question more, since those about AMX ask for its tiles.
  const Architecture of = kInstructionSets[static_cast<int>(isa)].architecture;
  if (of != Architecture::any && of != kHere) return false;
#if defined(__x86_64__)
  __builtin_cpu_init();
#elif defined(__aarch64__) && defined(__linux__)
  const auto has_features = [](unsigned long one, unsigned long two) {
    return (getauxval(AT_HWCAP) & one) == one && (getauxval(AT_HWCAP2) & two) == two;
  };
#endif
#define PINNACE_ASK(name, has) \
  const bool name = has;       \
  if (isa == Cpu::name) return name;
#define PINNACE_ASK_any PINNACE_ASK
#if defined(__x86_64__)
#define PINNACE_ASK_x86_64 PINNACE_ASK
#define PINNACE_ASK_arm64(name, has)
#elif defined(__aarch64__) && defined(__linux__)
#define PINNACE_ASK_x86_64(name, has)
#define PINNACE_ASK_arm64 PINNACE_ASK
#else
#define PINNACE_ASK_x86_64(name, has)
#define PINNACE_ASK_arm64(name, has)
#endif
#define ISA(name, architecture, has) PINNACE_ASK_##architecture(name, has)
#include "base/instruction_sets.inc"
#undef ISA
  return false;
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
  if (name.empty() && !part.empty()) name = str_cat(kHereName, " core ", implementer, "/", part);
  return name.empty() ? "unknown processor" : name;
}

}  // namespace pinnace
