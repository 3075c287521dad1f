// mat_mul and gemm in float32: rows of a against packed columns of b; constant b is packed once, in 16 bits where the
// precision asks for it.
#include "backends/cpu/matmul/gemm_f32.h"

namespace pinnace::cpu {

namespace {

/// a [batches, M, K] times b [batches or 1, K, N]; steps of 0 repeat an operand.
struct Product {
  int64_t batches = 1, M = 1, N = 1, K = 0;
  bool b_shared = true;  ///< one b for all batches
  ptrdiff_t k_step = 0, n_step = 1;
};

/// Which matrix of each operand a batch of the result is made of.
struct BatchOperands {
  int64_t a = 0, b = 0;
};

/// Size of batch dimension `d` of `rank` of an operand, which has leading ones where it has fewer dimensions.
int64_t batch_size(const Shape& shape, size_t rank, size_t d) {
  const size_t own = shape.size() >= 2 ? shape.size() - 2 : 0;
  return d + own < rank ? 1 : shape[d + own - rank].size;
}

/// Batch `i` of the result, counted in row-major order over the broadcast batch dimensions. Computed and not tabled, so
/// that a run allocates nothing.
BatchOperands batch_operands(const Shape& a, const Shape& b, int64_t i) {
  const size_t rank = std::max<size_t>({a.size(), b.size(), 2}) - 2;
  BatchOperands at;
  int64_t a_step = 1, b_step = 1;
  for (size_t d = rank; d-- > 0;) {
    const int64_t a_size = batch_size(a, rank, d), b_size = batch_size(b, rank, d);
    const int64_t size = std::max(a_size, b_size), index = i % size;
    i /= size;
    if (a_size > 1) at.a += index * a_step;
    if (b_size > 1) at.b += index * b_step;
    a_step *= a_size;
    b_step *= b_size;
  }
  return at;
}

Product mat_mul_product(const KernelNode& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  Product p;
  p.K = a.back().size;
  p.M = a.size() > 1 ? a[a.size() - 2].size : 1;
  p.N = b.size() > 1 ? b.back().size : 1;
  p.k_step = p.N;
  int64_t b_batches = 1, a_batches = 1;
  for (size_t i = 0; i + 2 < b.size(); ++i) b_batches *= b[i].size;
  for (size_t i = 0; i + 2 < a.size(); ++i) a_batches *= a[i].size;
  p.b_shared = b_batches == 1;
  if (p.b_shared) {  // one tall matrix: rows of all batches share b
    p.M *= a_batches;
    return p;
  }
  const size_t rank = std::max(a.size(), b.size()) - 2;
  for (size_t d = 0; d < rank; ++d) p.batches *= std::max(batch_size(a, rank, d), batch_size(b, rank, d));
  return p;
}

Product gemm_product(const KernelNode& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  const bool trans_b = node.attr_int("trans_b") != 0;
  Product p;
  p.M = a[0].size;
  p.K = a[1].size;
  p.N = b[trans_b ? 0 : 1].size;
  p.k_step = trans_b ? 1 : p.N;
  p.n_step = trans_b ? p.K : 1;
  return p;
}

using ProductOf = Product (*)(const KernelNode&);

PackedB packed_shape(const Product& p) {
  return {p.K, p.N};
}

template <ProductOf product, const F32Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  return packed_shape(product(node)).floats(*isa.gemm) * 4;
}

template <ProductOf product, const F32Isa& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  const Product p = product(node);
  const PackedB shape = packed_shape(p);
  const float* bias = node.has_input(2) ? static_cast<const float*>(node.input_data(2)) : nullptr;
  shape.pack(*isa.gemm, static_cast<const float*>(node.input_data(1)), p.k_step, p.n_step, bias, 1, 0,
             shape.panels(*isa.gemm), reinterpret_cast<float*>(packed));
  return {};
}

/// Room for spread rows of a; without packed weights also b's panels, one set or one for each thread.
template <ProductOf product, const F32Isa& isa, bool PACKED>
int64_t scratch_bytes(const KernelNode& node, int threads) {
  const Product p = product(node);
  const int64_t sets = PACKED ? 0 : p.b_shared ? 1 : threads;
  return ((p.b_shared ? ProductF32::room_floats(*isa.gemm, p.M, p.K) : 0) + sets * packed_shape(p).floats(*isa.gemm)) *
         4;
}

template <ProductOf product, const F32Isa& isa, bool PACKED>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const Product p = product(node);
  const GemmTilesF32& tiles = *isa.gemm;
  const PackedB shape = packed_shape(p);
  const float *a = in[0].data<float>(), *b = in[1].data<float>();
  const float* bias = in.size() > 2 && in[2].present() ? in[2].data<float>() : nullptr;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  ProductF32 whole{a, p.K, nullptr, shape, out[0].data<float>(), p.N, p.M, fused_unary(node)};
  const int64_t floats = shape.floats(tiles), panels = shape.panels(tiles);
  if (PACKED) {
    whole.b = reinterpret_cast<const float*>(context.packed);
    whole.run(tiles, *isa.half, context, scratch);
  } else if (p.b_shared) {
    context.parallel(panels, [&](int64_t t) { shape.pack(tiles, b, p.k_step, p.n_step, bias, 1, t, t + 1, scratch); });
    whole.b = scratch;
    whole.run(tiles, *isa.half, context, scratch + floats);
  } else {
    const int64_t tasks = std::min<int64_t>(context.threads, p.batches);
    context.parallel(tasks, [&](int64_t t) {
      ProductF32 one = whole;
      float* own = scratch + t * floats;
      one.b = own;
      for (int64_t i = p.batches * t / tasks; i < p.batches * (t + 1) / tasks && !loop_stops(); ++i) {
        const BatchOperands at = batch_operands(node.input(0).shape, node.input(1).shape, i);
        shape.pack(*isa.gemm, b + at.b * p.K * p.N, p.k_step, p.n_step, bias, 1, 0, panels, own);
        one.a = a + at.a * p.M * p.K;
        one.c = whole.c + i * p.M * p.N;
        one.block(*isa.gemm, 0, p.M, 0, panels);
      }
    });
  }
  return {};
}

bool mat_mul_takes(const KernelNode& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  if (b.size() < 2 || a.empty() || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  return !node.has_input(2) || node.input(2).elements() == b.back().size;
}

bool gemm_takes(const KernelNode& node) {
  if (node.attr_int("trans_a") || node.attr_float("alpha") != 1 || node.input(0).elements() == 0) return false;
  if (node.input(1).elements() == 0) return false;
  if (!node.has_input(2)) return true;
  const int64_t N = node.input(1).shape[node.attr_int("trans_b") ? 0 : 1].size;
  const Shape& c = node.input(2).shape;  // a row that is added to every row of the product
  return node.attr_float("beta") == 1 && !c.empty() && c.back().size == N && node.input(2).elements() == N;
}

/// A C that is no constant is a row that is added to every row of the product where there is one row.
bool gemm_by_shape(const KernelNode& node) {
  return node.has_input(2) && !node.input_data(2) && node.input(2).rank() == 2;
}

/// With constant b and bias: packed once.
template <ProductOf product, bool (*takes)(const KernelNode&)>
bool shared_takes(const KernelNode& node) {
  return takes(node) && product(node).b_shared;
}

template <ProductOf product, bool (*takes)(const KernelNode&), const F32Isa& isa>
constexpr CpuKernel make_packed() {
  return {.takes = shared_takes<product, takes>,
          .packed_bytes = packed_bytes<product, isa>,
          .pack = pack<product, isa>,
          .packs = 0b110,
          .stores = isa.precision == Precision::kFp32,
          .precision = isa.precision,
          .scratch_bytes = scratch_bytes<product, isa, true>,
          .run = run<product, isa, true>};
}

template <ProductOf product, bool (*takes)(const KernelNode&), const F32Isa& isa>
constexpr CpuKernel make_unpacked(bool (*by_shape)(const KernelNode&) = nullptr) {
  return {.takes = takes,
          .by_shape = by_shape,
          .scratch_bytes = scratch_bytes<product, isa, false>,
          .run = run<product, isa, false>};
}

template <const F32Isa& isa>
constexpr CpuKernel make_mat_mul() {
  return make_unpacked<mat_mul_product, mat_mul_takes, isa>();
}
template <const F32Isa& isa>
constexpr CpuKernel make_mat_mul_packed() {
  return make_packed<mat_mul_product, mat_mul_takes, isa>();
}
template <const F32Isa& isa>
constexpr CpuKernel make_gemm() {
  return make_unpacked<gemm_product, gemm_takes, isa>(gemm_by_shape);
}
template <const F32Isa& isa>
constexpr CpuKernel make_gemm_packed() {
  return make_packed<gemm_product, gemm_takes, isa>();
}

}  // namespace

PINNACE_KERNELS_F32(mat_mul_f32, make_mat_mul)
PINNACE_KERNELS_F32_PACKED(mat_mul_packed_f32, make_mat_mul_packed)
PINNACE_KERNELS_F32(gemm_f32, make_gemm)
PINNACE_KERNELS_F32_PACKED(gemm_packed_f32, make_gemm_packed)
PINNACE_KERNELS_16_BIT_WEIGHTS(mat_mul_packed_f16_weights, mat_mul_packed_bf16_weights, make_mat_mul_packed)
PINNACE_KERNELS_16_BIT_WEIGHTS(gemm_packed_f16_weights, gemm_packed_bf16_weights, make_gemm_packed)
PINNACE_KERNELS_BF16_PAIRS(mat_mul_packed_bf16_weights, make_mat_mul_packed)
PINNACE_KERNELS_BF16_PAIRS(gemm_packed_bf16_weights, make_gemm_packed)
PINNACE_KERNELS_SVE(mat_mul_packed_f32, make_mat_mul_packed, f32_sve)
PINNACE_KERNELS_SVE(gemm_packed_f32, make_gemm_packed, f32_sve)

}  // namespace pinnace::cpu
