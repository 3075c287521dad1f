// gemm and mat_mul on 8-bit quantised types, and mat_mul_integer, with constant weights: the tiles of convolutions over
// rows that are copied first, unsigned and filled up to quads. Types were checked by the shape rules.
#include <cstring>

#include "backends/cpu/i8_isa.h"
#include "backends/cpu/matmul/weights_i8.h"

namespace pinnace::cpu {
namespace {

/// y[M, N] = a[M, K] b[K, N]; element (k, n) of b stands at k * k_step + n * n_step.
struct ProductI8 {
  int64_t M, N, K;
  ptrdiff_t k_step, n_step;
  int64_t quads() const { return (K + 3) / 4; }
};

ProductI8 product_of(const KernelNode& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  const bool turned = node.node().op == "gemm" && node.attr_int("trans_b") != 0;
  ProductI8 p{1, b[turned ? 0 : 1].size, a.back().size, 0, 0};
  for (size_t i = 0; i + 1 < a.size(); ++i) p.M *= a[i].size;
  p.k_step = turned ? 1 : p.N;
  p.n_step = turned ? p.K : 1;
  return p;
}

/// Operands that make a product of two matrices with elements.
bool product_takes(const KernelNode& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  if (a.empty() || b.size() != 2 || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  return node.node().op != "gemm" || node.attr_int("trans_a") == 0;
}

template <const I8Isa& isa>
bool quantized_takes(const KernelNode& node) {
  if (!fits_nhwc_i8(node.input(0)) || !weights_fit(*isa.gemm, node.input(1)) || !product_takes(node)) return false;
  if (!node.has_input(2)) return true;
  const Shape& c = node.input(2).shape;  // a row that is added to every row of the product
  const int64_t N = product_of(node).N;
  return !c.empty() && c.back().size == N && node.input(2).elements() == N;
}

/// True if row sums are needed: weights as signed bytes have zero points.
bool needs_row_sums(const KernelNode& node) {
#if defined(__aarch64__)
  return static_cast<void>(node), false;
#else
  return node.node().op == "mat_mul_integer" ? IntegerZeros(node).any() : !signed_weights(node.input(1));
#endif
}

/// Panels; then, where row sums are needed, the zero point of every column.
template <const I8Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  const ProductI8 p = product_of(node);
  const int64_t columns = padded_columns(*isa.gemm, p.N);
  return panel_bytes(columns, p.quads()) + (needs_row_sums(node) ? columns * 4 : 0);
}
/// zero(n) gives that of column n.
template <class Zero>
void pack_zeros(const GemmTilesI8& gemm, int64_t N, Zero zero, std::byte* packed) {
  auto* to = reinterpret_cast<int32_t*>(packed);
  for (int64_t n = 0; n < padded_columns(gemm, N); ++n) to[n] = n < N ? zero(n) : 0;
}

template <const I8Isa& isa>
Status quantized_pack(const KernelNode& node, std::byte* packed) {
  const ProductI8 p = product_of(node);
  const auto activation = parse_activation(node);
  assert(activation.ok());
  const Requantize requantize(node.input(0), node.input(1), {node.input(0).dtype, {}, node.output_quantization(0)},
                              *activation);
  const auto* b = static_cast<const uint8_t*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const int32_t*>(node.input_data(2)) : nullptr;
  const auto flip = static_cast<uint8_t>(node.input(1).dtype == DType::kU8 ? 0x80 : 0);
  const auto weight = [&](int64_t n, int64_t k) {
    return k < p.K ? static_cast<int8_t>(b[k * p.k_step + n * p.n_step] ^ flip) : int8_t{0};
  };
  for (int64_t n = 0; n < p.N; n += isa.gemm->nr) {
    const int64_t width = panel_width(*isa.gemm, n, p.N);
    packed = pack_panel_i8(*isa.gemm, requantize, bias, nhwc_zero(node.input(0)), n, std::min(width, p.N - n), width, 1,
                           p.quads(), weight, packed);
  }
  if (needs_row_sums(node)) {
    pack_zeros(*isa.gemm, p.N, [&](int64_t n) { return signed_zero(node.input(1), n); }, packed);
  }
  return {};
}

/// The rows, unsigned and filled up to quads; and their sums.
int64_t scratch_bytes(const KernelNode& node, int) {
  const ProductI8 p = product_of(node);
  return p.M * p.quads() * 4 + (needs_row_sums(node) ? p.M * 4 : 0);
}

/// zero: what elements are taken less in the sums. sums: as many as rows, or null.
void copy_rows(const KernelContext& context, const ProductI8& p, const TensorView& a, int32_t zero, int32_t* sums) {
  const auto flip = static_cast<uint8_t>(nhwc_offset(a.dtype()));
  const int64_t row = p.quads() * 4, tasks = std::min(p.M, (p.M * row + 65535) / 65536);
  auto* to = reinterpret_cast<uint8_t*>(context.scratch);
  const auto* from = a.data<uint8_t>();
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t m = p.M * t / tasks; m < p.M * (t + 1) / tasks; ++m) {
      for (int64_t k = 0; k < p.K; ++k) to[m * row + k] = from[m * p.K + k] ^ flip;
      std::memset(to + m * row + p.K, 0, static_cast<size_t>(row - p.K));
      if (!sums) continue;
      uint32_t sum = 0;
      for (int64_t k = 0; k < p.K; ++k) sum += to[m * row + k];
      sums[m] = static_cast<int32_t>(sum - static_cast<uint32_t>(p.K) * static_cast<uint32_t>(zero));
    }
  });
}
/// needs_row_sums(), as zero points may be gone from memory when it runs.
int64_t plan_bytes(const KernelNode&) {
  return sizeof(bool);
}
void plan_row_sums(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) bool(needs_row_sums(node));
}
int32_t* row_sums(const KernelContext& context, const ProductI8& p) {
  const bool needed = *reinterpret_cast<const bool*>(context.plan);
  return needed ? reinterpret_cast<int32_t*>(context.scratch + p.M * p.quads() * 4) : nullptr;
}

/// Tasks of about 64 x 256 results, so that rows and panels stay in cache: f(g, first column) with g filled but for its
/// results and store; called once for each panel of each task.
template <class F>
void for_panels(const GemmTilesI8& gemm, const KernelContext& context, const ProductI8& p, const int32_t* sums, F f) {
  static constexpr ptrdiff_t kNone[] = {0};
  const int64_t row = p.quads() * 4;
  const int64_t rows = 56, panels = (p.N + gemm.nr - 1) / gemm.nr, row_tasks = (p.M + rows - 1) / rows;
  const int64_t together = std::max<int64_t>(1, 256 / gemm.nr), column_tasks = (panels + together - 1) / together;
  context.parallel(row_tasks * column_tasks, [&](int64_t t) {
    const int64_t m = t % row_tasks * rows, task = t / row_tasks;
    for (int64_t i = task * together; i < std::min(panels, (task + 1) * together); ++i) {
      const int64_t n = i * gemm.nr, width = panel_width(gemm, n, p.N);
      GemmRowsI8 g{};
      g.a = reinterpret_cast<const uint8_t*>(context.scratch) + m * row;
      g.a_row = row;
      g.blocks = kNone;
      g.block_count = 1;
      g.quads = p.quads();
      g.b = context.packed + panel_bytes(n, p.quads());
      g.c_row = p.N;
      g.M = std::min(rows, p.M - m);
      g.columns = static_cast<int32_t>(std::min(width, p.N - n));
      if (sums) {
        g.row_sums = sums + m;
        g.weight_zeros =
            reinterpret_cast<const int32_t*>(context.packed + panel_bytes(padded_columns(gemm, p.N), p.quads())) + n;
      }
      f(g, m, n, static_cast<int32_t>(width));
    }
  });
}

template <const I8Isa& isa>
Status quantized_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const ProductI8 p = product_of(node);
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const StoreI8 store = store_i8(*out[0].type, activation_range(activation, *out[0].type));
  const bool is_signed = out[0].dtype() == DType::kI8;
  int32_t* const sums = row_sums(context, p);
  copy_rows(context, p, in[0], nhwc_zero(*in[0].type), sums);
  for_panels(*isa.gemm, context, p, sums, [&](GemmRowsI8& g, int64_t m, int64_t n, int32_t width) {
    g.c = out[0].data<uint8_t>() + m * p.N + n;
    g.store = store;
    isa.gemm->rows(g, width);
    if (!is_signed) return;
    for (int64_t i = 0; i < g.M; ++i) {
      uint8_t* row = g.c + i * p.N;
      for (int32_t j = 0; j < g.columns; ++j) row[j] ^= 0x80;
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_quantized() {
  return {.takes = quantized_takes<isa>,
          .packed_bytes = packed_bytes<isa>,
          .pack = quantized_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .plan_bytes = plan_bytes,
          .plan = plan_row_sums,
          .scratch_bytes = scratch_bytes,
          .run = quantized_run<isa>};
}

// ---------------------------------------------------------------------------------------------------- mat_mul_integer

/// The zero point of a is one number, known when it runs; those of b are constants.
template <const I8Isa& isa>
bool integer_takes(const KernelNode& node) {
  if (!product_takes(node) || (node.has_input(2) && node.input(2).elements() != 1)) return false;
  if (node.has_input(3) && (!node.input_data(3) || node.input(3).rank() > 1)) return false;
  return isa.gemm->weight_zeros || !IntegerZeros(node).any();
}

/// As quantized_pack, with sums of columns in place of multipliers and no bias.
template <const I8Isa& isa>
Status integer_pack(const KernelNode& node, std::byte* packed) {
  const ProductI8 p = product_of(node);
  const auto* b = static_cast<const uint8_t*>(node.input_data(1));
  const auto flip = static_cast<uint8_t>(node.input(1).dtype == DType::kU8 ? 0x80 : 0);
  const auto weight = [&](int64_t n, int64_t k) {
    return k < p.K ? static_cast<int8_t>(b[k * p.N + n] ^ flip) : int8_t{0};
  };
  for (int64_t n = 0; n < p.N; n += isa.gemm->nr) {
    const int64_t width = panel_width(*isa.gemm, n, p.N);
    packed = pack_integer_panel(*isa.gemm, n, std::min(width, p.N - n), width, 1, p.quads(), weight, packed);
  }
  const IntegerZeros zeros(node);
  if (zeros.any()) pack_zeros(*isa.gemm, p.N, [&](int64_t n) { return zeros[n]; }, packed);
  return {};
}

template <const I8Isa& isa>
Status integer_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const ProductI8 p = product_of(node);
  const int32_t stored = (in.size() > 2 && in[2].present() ? load_int(in[2], 0) : 0) + nhwc_offset(in[0].dtype());
  const int32_t zero = stored - isa.gemm->activation_offset;
  int32_t* const sums = row_sums(context, p);
  copy_rows(context, p, in[0], stored, sums);
  for_panels(*isa.gemm, context, p, sums, [&](GemmRowsI8& g, int64_t m, int64_t n, int32_t width) {
    g.sums = out[0].data<int32_t>() + m * p.N + n;
    isa.gemm->rows(g, width);
    const auto* columns = reinterpret_cast<const int32_t*>(g.b) + width;
    for (int64_t i = 0; i < g.M; ++i) {
      auto* row = reinterpret_cast<uint32_t*>(g.sums) + i * p.N;  // modulo 2^32
      for (int32_t j = 0; j < g.columns; ++j) row[j] -= static_cast<uint32_t>(columns[j]) * static_cast<uint32_t>(zero);
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_integer() {
  return {.takes = integer_takes<isa>,
          .packed_bytes = packed_bytes<isa>,
          .pack = integer_pack<isa>,
          .packs = 0b1010,
          .stores = true,
          .plan_bytes = plan_bytes,
          .plan = plan_row_sums,
          .scratch_bytes = scratch_bytes,
          .run = integer_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(mat_mul_i8, make_quantized)
PINNACE_KERNELS_AVX_VNNI(mat_mul_i8, make_quantized)
PINNACE_KERNELS_AMX_INT8(mat_mul_i8, make_quantized)
PINNACE_KERNELS_I8(mat_mul_integer_i8, make_integer)
PINNACE_KERNELS_AVX_VNNI(mat_mul_integer_i8, make_integer)
PINNACE_KERNELS_AMX_INT8(mat_mul_integer_i8, make_integer)

}  // namespace pinnace::cpu
