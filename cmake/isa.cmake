# The instruction sets that the CPU back end is compiled for, the lowest first: a line each, with the processors that may
# have it and the flags of its object library. cpp/base/instruction_sets.inc has the same names in the same order, and says
# how a processor is asked; cpp/backends/cpu/simd/<name>.h says how large its registers are.
set(x86_64 "x86_64|AMD64")
set(arm64 "aarch64|arm64")

ISA(generic      ".*")  # SSE2; NEON, which has a fused multiply-add, so that no set of its own would be better
ISA(avx2         ${x86_64} -mavx2 -mfma -mf16c)
ISA(avx_vnni     ${x86_64} -mavx2 -mfma -mf16c -mavxvnni)  # client processors without AVX-512
ISA(avx512       ${x86_64} -march=skylake-avx512 -mprefer-vector-width=512)
ISA(avx512_vnni  ${x86_64} -march=cascadelake -mprefer-vector-width=512)
ISA(avx512_bf16  ${x86_64} -march=cooperlake -mprefer-vector-width=512)
ISA(amx_int8     ${x86_64} -march=cooperlake -mprefer-vector-width=512)  # tile instructions are written as assembly
ISA(amx_bf16     ${x86_64} -march=cooperlake -mprefer-vector-width=512)
ISA(neon_dotprod ${arm64}  -march=armv8.2-a+fp16+dotprod)
ISA(neon_i8mm    ${arm64}  -march=armv8.2-a+fp16+dotprod+i8mm+bf16)
ISA(sve          ${arm64}  -march=armv8.2-a+fp16+dotprod+i8mm+bf16+sve)

pinnace_end_of_instruction_sets()
