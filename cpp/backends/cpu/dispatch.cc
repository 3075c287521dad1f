// Which kernel runs a node.
#include <array>
#include <cstring>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul/amx.h"
#include "ops/empty.h"

#include "backends/cpu/kernel_lists.h"

#define PINNACE_NO_KERNEL(...)
#if defined(__aarch64__)
#define KERNEL_ARM64 KERNEL
#define KERNEL_X86 PINNACE_NO_KERNEL
#else
#define KERNEL_ARM64 PINNACE_NO_KERNEL
#define KERNEL_X86 KERNEL
#endif

namespace pinnace::cpu {

#define KERNEL(op, dtype, isa, rank, symbol) extern const CpuKernel symbol;
#include "backends/cpu/kernels.inc"
#undef KERNEL

namespace {
// Spelt in the lists as in the text form.
[[maybe_unused]] constexpr DType f32 = DType::kF32, f16 = DType::kF16, bf16 = DType::kBF16, f64 = DType::kF64,
                                 i8 = DType::kI8, u8 = DType::kU8, i16 = DType::kI16, u16 = DType::kU16,
                                 i32 = DType::kI32, i64 = DType::kI64, any = kAnyDType;

struct Listed {
  CpuKernelLine line;
  Cpu rank;
};
template <size_t N>
constexpr std::array<CpuKernelLine, N> by_rank(const Listed (&listed)[N]) {
  std::array<CpuKernelLine, N> lines{};
  size_t count = 0;
  for (int rank = kCpuCount - 1; rank >= 0; --rank) {
    for (const Listed& one : listed) {
      if (one.rank == static_cast<Cpu>(rank)) lines[count++] = one.line;
    }
  }
  return lines;
}

#define KERNEL(op, dtype, isa, rank, symbol) {{#op, dtype, Cpu::isa, #symbol, &symbol}, Cpu::rank},
// The last line is not a kernel: an empty array is not C++.
constexpr auto kLines = by_rank({
#include "backends/cpu/kernels.inc"
    {{"", DType::kF32, Cpu::generic, "", nullptr}, Cpu::generic},
});
#undef KERNEL

#if defined(PINNACE_PACKS_ARM64)
}  // namespace
#undef KERNEL_ARM64
#undef KERNEL_X86
#define KERNEL_ARM64 KERNEL
#define KERNEL_X86 PINNACE_NO_KERNEL
#define KERNEL(op, dtype, isa, rank, symbol) extern const CpuKernel symbol;
#include "backends/cpu/kernels.inc"
#undef KERNEL
namespace {
/// ARM64's lines, of which nothing but the weights can be packed here. Never destroyed: no exit-time destructors.
const std::vector<CpuKernelLine>& arm64_lines() {
  static const std::vector<CpuKernelLine>* const lines = [] {
#define KERNEL(op, dtype, isa, rank, symbol) {{#op, dtype, Cpu::isa, #symbol, &symbol}, Cpu::rank},
    static constexpr auto kArm64 = by_rank({
#include "backends/cpu/kernels.inc"
    });
#undef KERNEL
    auto* all = new std::vector<CpuKernelLine>(kArm64.begin(), kArm64.end());
    for (CpuKernelLine& line : *all) {
      if (line.kernel->neon) line.kernel = line.kernel->neon;
    }
    return all;
  }();
  return *lines;
}
#endif

bool takes(const CpuKernelLine& line, const KernelNode& node) {
  if (line.dtype != kAnyDType && line.dtype != node.input(0).dtype) return false;
  if (node.fusion().kinds() & ~line.kernel->fuses) return false;
  for (int i = 0; i < node.input_count() && i < 32; ++i) {
    if ((line.kernel->packs >> i & 1) && node.has_input(i) && !node.input_data(i)) return false;
  }
  return !line.kernel->takes || line.kernel->takes(node);
}
/// Whether the line computes each element in the same steps whatever the other sizes are.
bool is_shape_invariant(const CpuKernelLine& line, const KernelNode& node) {
  const bool floats = line.dtype == DType::kF32 || line.dtype == DType::kF16;
  if (floats && line.kernel->layouts != Layouts::kDense) return false;
  return !line.kernel->by_shape || !line.kernel->by_shape(node);
}
}  // namespace

bool line_runs(const CpuKernelLine& line) {
#if defined(__x86_64__)
  if (tiles_modelled() && (line.needs == Cpu::amx_int8 || line.needs == Cpu::amx_bf16)) return true;
#endif
  return cpu_runs(line.needs);
}

std::span<const CpuKernelLine> cpu_kernels([[maybe_unused]] bool for_arm64) {
#if defined(PINNACE_PACKS_ARM64)
  if (for_arm64) return arm64_lines();
#endif
  return std::span(kLines).first(kLines.size() - 1);
}

const CpuKernelLine* choose_kernel(const KernelNode& node, CpuMode mode, uint32_t has_nhwc, bool nhwc_wanted) {
  if (!node.has_input(0)) return nullptr;
  const DType stored = node.stored_as();
  const Precision precision = stored == DType::kF16    ? Precision::kFp16
                              : stored == DType::kBF16 ? Precision::kBf16
                                                       : mode.precision;
  for (const CpuKernelLine& line : cpu_kernels(mode.for_arm64)) {
    if (line.kernel->precision != Precision::kFp32 && line.kernel->precision != precision) continue;
    if (line.kernel->layouts == Layouts::kFollows && !(line.kernel->nhwc_inputs & has_nhwc)) continue;
    if (line.kernel->layouts == Layouts::kLeads && !nhwc_wanted) continue;
    if (line.op == node.node().op && cpu_includes(mode.instruction_set, line.needs) && takes(line, node) &&
        (!mode.shape_invariant || is_shape_invariant(line, node))) {
      return &line;
    }
  }
  return nullptr;
}

Status run_forced(const CpuKernelLine& line, const KernelNode& node, std::span<const TensorView> inputs,
                  std::span<const TensorView> outputs, int threads) {
  if (!line_runs(line)) return unsupported(line.name, " needs ", kernel_isa_name(line.needs));
  if (line.op != node.node().op || !node.has_input(0) || !takes(line, node)) {
    return unsupported(line.name, " does not take ", node.label());
  }
  std::vector<const TensorType*> read, made;
  for (const TensorView& view : inputs) read.push_back(view.type);
  for (const TensorView& view : outputs) made.push_back(view.type);
  if (nothing_to_compute(node.op(), read, made)) return {};
  const CpuKernel& kernel = *line.kernel;
  Buffer packed, scratch;
  if (const int64_t bytes = kernel.packed_bytes ? kernel.packed_bytes(node) : 0; bytes > 0) {
    PINNACE_ASSIGN(packed, Buffer::allocate(static_cast<size_t>(bytes), line.name));
    PINNACE_TRY(kernel.pack(node, packed.data()));
  }
  if (kernel.scratch_bytes) {
    PINNACE_ASSIGN(scratch, Buffer::allocate(static_cast<size_t>(kernel.scratch_bytes(node, threads)), line.name));
  }
  KernelContext context{scratch.data(), packed.data(), nullptr,       &ThreadPool::shared(),
                        threads,        nullptr,       &node.fusion()};
  PINNACE_ASSIGN(Buffer plan,
                 Buffer::allocate(kernel.plan ? static_cast<size_t>(kernel.plan_bytes(node)) : 0, line.name));
  context.plan = plan.data();
  if (kernel.layouts == Layouts::kDense) {
    if (kernel.plan) kernel.plan(node, nullptr, plan.data());
    return kernel.run(node, context, inputs, outputs);
  }

  // Operands are brought into the layout that the line works on. What is of no value there is poisoned.
  std::vector<TensorView> operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), outputs.begin(), outputs.end());
  std::vector<Layout> layouts(operands.size());
  std::vector<Buffer> buffers;
  // Gives an operand memory of that layout, and returns what it was.
  const auto lay_out = [&](TensorView& operand, const Layout& layout) -> Result<TensorView> {
    const auto bytes = static_cast<size_t>(layout_bytes(*operand.type, layout));
    PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(bytes, line.name));
    std::memset(buffer.data(), 0xff, bytes);  // NaN
    const TensorView dense = operand;
    operand.bytes = buffer.data();
    buffers.push_back(std::move(buffer));
    clear_border(operand, layout);
    return dense;
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool output = i == inputs.size();
    const bool is_nhwc =
        output || (i < inputs.size() && i < 32 && (kernel.nhwc_inputs >> i & 1) && operands[i].present() &&
                   !(kernel.layouts == Layouts::kFollows && node.input_data(static_cast<int>(i))));
    if (!is_nhwc) continue;
    const TensorType& type = *operands[i].type;
    layouts[i] = nhwc_layout(type);
    if (i == 0 && kernel.border) layouts[i].border = kernel.border(node);
    if (output) layouts[i].border = {1, 2, 3, 1};  // whatever the reader of the result asks for
    PINNACE_ASSIGN(const TensorView dense, lay_out(operands[i], layouts[i]));
    if (!output) to_nhwc(context, dense, operands[i], layouts[i]);
  }
  context.layouts = layouts.data();
  Fusion fusion = node.fusion();
  if (fusion.residual) {
    FusedView& addend = fusion.residual->addend;
    addend.layout = nhwc_layout(*addend.view.type);
    PINNACE_ASSIGN(const TensorView dense, lay_out(addend.view, addend.layout));
    to_nhwc(context, dense, addend.view, addend.layout);
  }
  context.fusion = &fusion;
  const std::span<const TensorView> all(operands);
  // As in a run, contents of every input are at hand, constant or not.
  std::vector<const TensorType*> types;
  std::vector<const void*> contents;
  for (const TensorView& view : all.first(inputs.size())) {
    types.push_back(view.type);
    contents.push_back(view.bytes);
  }
  const KernelNode running(NodeView(node.node(), node.op(), types, contents), fusion, node.stored_as());
  if (kernel.plan) kernel.plan(running, layouts.data(), plan.data());
  PINNACE_TRY(kernel.run(running, context, all.first(inputs.size()), all.subspan(inputs.size())));
  to_dense(context, operands[inputs.size()], layouts[inputs.size()], outputs[0]);
  return {};
}

}  // namespace pinnace::cpu
