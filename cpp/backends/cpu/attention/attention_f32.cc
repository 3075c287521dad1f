// attention in float32: for each head a block of queries at a time, so that its scores stay in cache: scores on the
// tiles, exp in place, times the values on the tiles, divided by the row's sum at the end. Memory does not grow with
// the number of queries.
#include <cmath>
#include <cstring>

#include "backends/cpu/attention/attention_f32.h"
#include "backends/cpu/matmul/gemm_f32.h"
#include "backends/cpu/softmax/softmax_f32.h"

namespace pinnace::cpu {

Heads heads_of(const KernelNode& node) {
  const TensorType &q = node.input(0), &k = node.input(1), &v = node.input(2);
  Heads s{};
  s.B = q.shape[0].size;
  if (q.rank() == 3) {
    s.Hq = node.attr_int("q_num_heads"), s.Hk = node.attr_int("kv_num_heads");
    s.Sq = q.shape[1].size, s.Sk = k.shape[1].size;
    s.E = q.shape[2].size / s.Hq, s.F = v.shape[2].size / s.Hk;
    s.q_head = s.k_head = s.E, s.v_head = s.y_head = s.F;
    s.q_token = s.Hq * s.E, s.k_token = s.Hk * s.E, s.v_token = s.Hk * s.F, s.y_token = s.Hq * s.F;
  } else {
    s.Hq = q.shape[1].size, s.Hk = k.shape[1].size;
    s.Sq = q.shape[2].size, s.Sk = k.shape[2].size, s.E = q.shape[3].size, s.F = v.shape[3].size;
    s.q_head = s.Sq * s.E, s.k_head = s.Sk * s.E, s.v_head = s.Sk * s.F, s.y_head = s.Sq * s.F;
    s.q_token = s.k_token = s.E, s.v_token = s.y_token = s.F;
  }
  return s;
}

bool attention_takes(const KernelNode& node) {
  if (node.output_count() != 1 || node.attr_float("softcap") != 0 || node.attr_int("left_window_size") >= 0 ||
      node.attr_int("right_window_size") >= 0) {
    return false;
  }
  for (int i = 4; i < node.input_count(); ++i) {
    if (node.has_input(i)) return false;
  }
  for (int i = 0; i < 3; ++i) {
    if (node.input(i).dtype != DType::kF32 || node.input(i).elements() == 0) return false;
  }
  if (!node.has_input(3)) return true;
  const TensorType& mask = node.input(3);
  return (mask.dtype == DType::kF32 || mask.dtype == DType::kBool) && mask.shape.back() == heads_of(node).Sk;
}

float attention_scale(const KernelNode& node, const Heads& s) {
  const auto wanted = static_cast<float>(node.attr_float("scale"));
  return wanted != 0 ? wanted : static_cast<float>(1 / std::sqrt(static_cast<double>(s.E)));
}

namespace {

/// Queries of a block: their scores fill at most half of a second-level cache of 256 KiB.
int64_t block_rows(const Heads& s) {
  return std::clamp<int64_t>(32 * 1024 / s.Sk / 14 * 14, 14, 112);
}

/// A thread's panels of keys and values, scores, sums and the mask of one query.
struct Room {
  PackedB keys, values;
  int64_t scores, total;
  Room(const Heads& s, const GemmTilesF32& tiles) : keys{s.E, s.Sk}, values{s.Sk, s.F} {
    const auto whole = [](int64_t floats) { return (floats + 15) / 16 * 16; };
    scores = whole(keys.floats(tiles)) + whole(values.floats(tiles));
    total = scores + whole(block_rows(s) * row(s)) + whole(block_rows(s)) + whole(s.Sk);
  }
  /// Floats from query to query: not whole pages, see gemm_f32.cc.
  static int64_t row(const Heads& s) { return (s.Sk + 15) / 16 * 16 + (s.Sk % 1024 == 0 ? 16 : 0); }
};

template <const F32Isa& isa>
int64_t attention_scratch_bytes(const KernelNode& node, int threads) {
  return Room(heads_of(node), *isa.gemm).total * threads * 4;
}

/// By the exponents: a sum of products with 0 would have to be added one by one.
bool all_finite(const float* x, int64_t rows, int64_t columns, ptrdiff_t row) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      uint32_t bits;
      std::memcpy(&bits, x + i * row + j, sizeof bits);
      found |= (bits & kExponent) == kExponent ? 1u : 0u;
    }
  }
  return found == 0;
}

template <const F32Isa& isa>
Status attention_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const Heads s = heads_of(node);
  const Room room(s, *isa.gemm);
  const float scale = attention_scale(node, s);
  const bool causal = node.attr_int("is_causal") != 0, masked = in.size() > 3 && in[3].present();
  const int64_t rows = block_rows(s), row = Room::row(s);
  const int64_t keys_floats = (room.keys.floats(*isa.gemm) + 15) / 16 * 16;

  // Heads are divided among the threads; where there are fewer, their queries too.
  const int64_t pairs = s.B * s.Hq, blocks = (s.Sq + rows - 1) / rows;
  const int64_t parts = std::min(blocks, pairs >= context.threads ? 1 : (context.threads + pairs - 1) / pairs);
  const int64_t units = pairs * parts, tasks = std::min<int64_t>(context.threads, units);
  context.parallel(tasks, [&](int64_t t) {
    float* keys = reinterpret_cast<float*>(context.scratch) + t * room.total;
    float *values = keys + keys_floats, *scores = keys + room.scores, *sums = scores + (rows * row + 15) / 16 * 16;
    float* mask_row = sums + (rows + 15) / 16 * 16;
    int64_t packed = -1;
    bool finite = true;
    for (int64_t u = units * t / tasks; u < units * (t + 1) / tasks && !loop_stops(); ++u) {
      const int64_t pair = u / parts, part = u % parts, b = pair / s.Hq, h = pair % s.Hq, hk = h / (s.Hq / s.Hk);
      const float* v = in[2].data<float>() + b * s.Hk * s.Sk * s.F + hk * s.v_head;
      if (packed != b * s.Hk + hk) {
        packed = b * s.Hk + hk;
        const float* k = in[1].data<float>() + b * s.Hk * s.Sk * s.E + hk * s.k_head;
        room.keys.pack(*isa.gemm, k, 1, s.k_token, nullptr, scale, 0, room.keys.panels(*isa.gemm), keys);
        room.values.pack(*isa.gemm, v, s.v_token, 1, nullptr, 1, 0, room.values.panels(*isa.gemm), values);
        finite = all_finite(v, s.Sk, s.F, s.v_token);
      }
      const float* q = in[0].data<float>() + b * s.Hq * s.Sq * s.E + h * s.q_head;
      float* y = out[0].data<float>() + b * s.Hq * s.Sq * s.F + h * s.y_head;
      for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts && !loop_stops(); ++block) {
        const int64_t first = block * rows, count = std::min(rows, s.Sq - first);
        const ProductF32 score{q + first * s.q_token, s.q_token, keys, room.keys, scores, row, count, {}};
        score.block(*isa.gemm, 0, count, 0, room.keys.panels(*isa.gemm));
        for (int64_t i = 0; i < count; ++i) {
          float* line = scores + i * row;
          if (masked) {
            const float* bias = Mask(in[3], s.Sk).row(b, h, first + i, 0, s.Sk, mask_row);
            isa.arithmetic->dense(BinaryKind::kAdd, line, 1, bias, 1, line, s.Sk);
            // A key that takes no part may hold anything, NaN too.
            for (int64_t j = 0; j < s.Sk; ++j) line[j] = bias[j] == -__builtin_inff() ? bias[j] : line[j];
          }
          if (causal) std::fill(line + std::min(s.Sk, first + i + 1), line + s.Sk, -__builtin_inff());
          sums[i] = softmax_loops_f32<isa.loops>.exp_sum(line, line, s.Sk);
        }
        float* to = y + first * s.y_token;
        if (finite) {
          const ProductF32 mix{scores, row, values, room.values, to, s.y_token, count, {}};
          mix.block(*isa.gemm, 0, count, 0, room.values.panels(*isa.gemm));
        }
        for (int64_t i = 0; i < count; ++i) {
          float* line = to + i * s.y_token;
          if (!finite) {
            std::fill_n(line, s.F, 0.0f);
            for (int64_t j = 0; j < s.Sk; ++j) {
              const float p = scores[i * row + j];
              for (int64_t f = 0; f < s.F && p != 0; ++f) line[f] += p * v[j * s.v_token + f];
            }
          }
          const float share = sums[i] == 0 ? 0.0f : 1.0f / sums[i];
          isa.arithmetic->dense(BinaryKind::kMul, line, 1, &share, 0, line, s.F);
        }
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_attention() {
  return {.takes = attention_takes,
          .by_shape = always_by_shape,
          .scratch_bytes = attention_scratch_bytes<isa>,
          .run = attention_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(attention_f32, make_attention)

}  // namespace pinnace::cpu
