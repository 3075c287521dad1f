// What a CPU kernel is. The families' kernels.inc list them; a node takes the first kernel that fits it, best first,
// else its operator's reference code.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "backends/backend.h"
#include "backends/cpu/fusion.h"
#include "backends/cpu/layout.h"
#include "base/cpu_features.h"

namespace pinnace::cpu {

/// A kernel's surroundings during one call.
struct KernelContext {
  std::byte* scratch = nullptr;       ///< as many bytes as scratch_bytes() asked for, aligned
  const std::byte* packed = nullptr;  ///< what pack() made; null for kernels without
  const std::byte* plan = nullptr;    ///< what plan() wrote; null for kernels without
  ThreadPool* pool = nullptr;
  int threads = 1;
  /// Of the inputs, then the outputs; null: all are dense.
  const Layout* layouts = nullptr;
  /// What is fused into the node, for run() and rows(): all operands have bytes. Before, it is KernelNode::fusion().
  const Fusion* fusion = &kNoFusion;
  bool shape_invariant = false;  ///< Options::shape_invariant, for kernels that can do either
  /// Calls f(i) for i in [0, tasks) on the run's threads. The split may depend on shapes, never on `threads`: results
  /// are the same for every thread count.
  template <class F>
  void parallel(int64_t tasks, F&& f) const {
    pool->run(tasks, threads, f);
  }
  /// Calls f(first, count) for parts of [0, elements), `each` elements long but for the last.
  template <class F>
  void in_parts(int64_t elements, int64_t each, F&& f) const {
    parallel((elements + each - 1) / each, [&](int64_t t) { f(t * each, std::min(each, elements - t * each)); });
  }
};

/// What a session asks for: the smallest floats that products may read. Sums are float32 whatever it is, but with kFp16
/// where the processor computes in fp16, in convolutions.
enum class Precision : uint8_t { kFp32, kFp16, kBf16 };

/// Version of everything that pack() of a kernel with `stores` writes. Packed weights in a file are of use to builds of
/// the same version only: it goes up whenever one of them changes (tests/cpp/program/payload_test.cc notices).
inline constexpr int kPackedLayout = 2;

/// Which layouts a kernel works on.
enum class Layouts : uint8_t {
  kDense,    ///< every operand is dense
  kNhwc,     ///< NHWC-packed operands, to which dense ones are brought
  kFollows,  ///< NHWC-packed operands, chosen only where one is so already
  kLeads,    ///< dense operands, an NHWC-packed result, chosen only where a reader of output 0 wants one
};

/// Rows of NHWC-packed input 0 that row i of the output is made of: from i * stride - before on, `span` of them.
struct RowWindow {
  int64_t stride = 1, before = 0, span = 1;
};

/// One way to run one operator for one element type (of its first input) on processors that meet `needs`.
/// All functions are pure; types are concrete. Outputs may be written over inputs exactly where OpDef::in_place allows.
struct CpuKernel {
  /// True if this kernel takes the node; element type, needs and operator were checked. Null: always.
  bool (*takes)(const KernelNode& node) = nullptr;
  /// Bytes of constants in the kernel's own layout; 0 or null: none. Called only if every input in `packs` is constant.
  int64_t (*packed_bytes)(const KernelNode& node) = nullptr;
  /// Fills packed_bytes() bytes from node.input_data().
  Status (*pack)(const KernelNode& node, std::byte* packed) = nullptr;
  /// Bits of the inputs that must be constants for this kernel. With packed_bytes, run() reads what pack() made and not
  /// these inputs, unless they are of less than a page: their memory may have been given back.
  uint32_t packs = 0;
  /// pack() writes what is worth keeping in a file, and numbers alone: run() stays within its tensors whatever they
  /// are. Bytes that come from a file must also satisfy `valid`, where there is one.
  bool stores = false;
  bool (*valid)(const KernelNode& node, const std::byte* packed) = nullptr;
  /// What pack() writes depends on the sizes of inputs as well: it is made for each set of them. Without, plans for
  /// different sizes share what has the same number of bytes and is made of the same contents.
  bool packs_sizes = false;
  Layouts layouts = Layouts::kDense;
  /// Bits of the inputs that are NHWC-packed, with kNhwc and kFollows; the others and constants are dense. Output 0 is
  /// NHWC-packed.
  uint32_t nhwc_inputs = 0;
  /// Kinds of work that it can do beside the node's own; a node with other kinds is not given to it. It packs integer
  /// weights, and reads a value to be added in the layout of output 0.
  FusionKinds fuses = 0;
  /// The zeros that must stand around NHWC-packed input 0; null: none.
  Border (*border)(const KernelNode& node) = nullptr;
  /// Other than kFp32: chosen only where the session, or the node's own type, has that precision. Each sum of a float32
  /// line then differs by at most 2^-11 (kFp16) or 2^-7 (kBf16) of the sum of its products' magnitudes.
  Precision precision = Precision::kFp32;
  /// Floats: the largest error, as a part of the largest output, where it is more than that of sums in a row; before an
  /// activation, whose slope may make more of it. f16: as a part of the largest sum of magnitudes.
  float error = 0;
  /// Whether the order of a sum, or whether this kernel takes the node, depends on sizes of dimensions that the sum
  /// does not run over; null: it does not. Options::shape_invariant passes over such lines, and over all that compute
  /// floats in NHWC, whose borders and pixels decide who takes them.
  bool (*by_shape)(const KernelNode& node) = nullptr;
  /// What run() needs of the node's types and attributes, worked out once: plan_bytes() bytes that plan() writes, given
  /// the layouts of the inputs, then the outputs. Null: none.
  int64_t (*plan_bytes)(const KernelNode& node) = nullptr;
  void (*plan)(const KernelNode& node, const Layout* layouts, std::byte* to) = nullptr;
  /// Bytes of scratch for up to `threads` threads; null: none.
  int64_t (*scratch_bytes)(const KernelNode& node, int threads) = nullptr;
  Status (*run)(const KernelNode& node, const KernelContext& context, std::span<const TensorView> inputs,
                std::span<const TensorView> outputs) = nullptr;
  /// Rows [first, last) of output 0, NHWC-packed, counted through all items of the batch; on the calling thread,
  /// without scratch. Only those rows, and the rows of input 0 that they are made of, need to be in memory. Null: the
  /// kernel works on whole batch items only. reads_rows: which rows of input 0; null: that is dense.
  void (*rows)(const KernelContext& context, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
               int64_t first, int64_t last) = nullptr;
  RowWindow (*reads_rows)(const KernelNode& node) = nullptr;
  /// On x86-64, of a kernel of the baseline: the same as ARM64's baseline packs for it. Null: it packs alike.
  const CpuKernel* neon = nullptr;
};

/// For CpuKernel::by_shape: of every node.
inline bool always_by_shape(const KernelNode&) {
  return true;
}

/// A kernel of ARM64 where only its weights can be packed.
constexpr CpuKernel packing_only(CpuKernel kernel) {
  kernel.run = nullptr;
  kernel.rows = nullptr;
  return kernel;
}
/// A kernel of the baseline with what ARM64's packs for it.
constexpr CpuKernel with_neon(CpuKernel kernel, const CpuKernel* neon) {
  kernel.neon = neon;
  return kernel;
}

/// Stands for every element type in kernels.inc, where it is written `any`.
inline constexpr DType kAnyDType = static_cast<DType>(0xff);

/// A line of kernels.inc.
struct CpuKernelLine {
  std::string_view op;
  DType dtype;  ///< of input 0, or kAnyDType
  Cpu needs;
  std::string_view name;
  const CpuKernel* kernel;
};
/// Of this architecture, or, in builds that prepare models on x86-64, what can be packed on it for ARM64.
std::span<const CpuKernelLine> cpu_kernels(bool for_arm64 = false);

/// What lines are chosen for.
struct CpuMode {
  Cpu instruction_set;
  Precision precision = Precision::kFp32;
  bool shape_invariant = false;  ///< as in Options
  bool for_arm64 = false;        ///< the instruction set is ARM64's, and this machine's is not
  /// "neon_dotprod"; "sse2" or "neon" for the baseline.
  std::string_view isa() const {
    return for_arm64 && instruction_set == Cpu::generic ? "neon" : cpu_isa_name(instruction_set);
  }
};

/// The first line for the node, or null: reference code. has_nhwc: bits of the operands that are NHWC-packed already.
/// nhwc_wanted: a reader of output 0 wants it NHWC-packed.
const CpuKernelLine* choose_kernel(const KernelNode& node, CpuMode mode, uint32_t has_nhwc = 0,
                                   bool nhwc_wanted = false);

/// True if run_forced() runs the line here: its set is the processor's, or tiles are modelled (matmul/amx.h).
bool line_runs(const CpuKernelLine& line);
/// Exactly this line on this node, for tests and benchmarks: packs, makes scratch and runs. kUnsupported if the line
/// does not take the node or the processor does not run it.
Status run_forced(const CpuKernelLine& line, const KernelNode& node, std::span<const TensorView> inputs,
                  std::span<const TensorView> outputs, int threads);

}  // namespace pinnace::cpu
