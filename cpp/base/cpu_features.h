// What this processor can do, as instruction sets that kernels are built for. Those of both architectures are known
// everywhere, so that a name can be told from a misspelling; only those of the architecture that a build is for ever
// run.
#pragma once

#include <string>
#include <string_view>

namespace pinnace {

/// Instruction sets, in the order of instruction_sets.inc, which says what each has. A kernel names the one it needs.
enum class Cpu : uint8_t {
#define ISA(name, architecture, has) name,
#include "base/instruction_sets.inc"
#undef ISA
};
inline constexpr int kCpuCount = 0
#define ISA(name, architecture, has) +1
#include "base/instruction_sets.inc"
#undef ISA
    ;

/// As kernels are called: "avx2", "generic" for the baseline.
std::string_view kernel_isa_name(Cpu isa);
/// As users write it: "avx2", "sse2" or "neon" for the baseline.
std::string_view cpu_isa_name(Cpu isa);
/// The inverse of both, with "sse2" or "neon" for the baseline of this architecture; false if the name is no
/// instruction set of this build's architecture.
bool cpu_isa_from_name(std::string_view name, Cpu* isa);
/// The same for the names of ARM64's instruction sets, whatever this build is for.
bool arm64_isa_from_name(std::string_view name, Cpu* isa);
/// Why a name is no instruction set of this build's architecture, one sentence with the names that are known; empty
/// if it is one.
std::string cpu_isa_name_problem(std::string_view name);
/// The same for what the environment variable PINNACE_CPU_ISA says; empty if it is not set.
std::string cpu_isa_problem();
/// True if what runs code of `set` runs code of `needed` too, of the same architecture.
bool cpu_includes(Cpu set, Cpu needed);
/// True if this processor (and operating system) runs code of that instruction set. The first question about AMX asks
/// Linux to let this process use tiles, which it refuses where an alternate signal stack is too small to hold them.
bool cpu_runs(Cpu isa);
/// True if the set is worth choosing where it runs: sve if its registers are longer than 16 bytes, avx512_bf16 unless
/// the processor is Intel's, whose dot products of bfloat16 take twice as long as float32's multiply-adds of as many
/// numbers (Granite Rapids: ResNet-50 77 ms, in float32 52).
bool cpu_pays(Cpu isa);
/// The best instruction set that cpu_runs and that cpu_pays; with PINNACE_CPU_ISA the
/// one that it names, or the highest below it that cpu_runs. Read once.
Cpu cpu_isa();
/// The processor's own name, "AMD EPYC", for reports.
std::string cpu_description();

}  // namespace pinnace
