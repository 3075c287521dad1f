// rotary_embedding: rotates pairs (a, b) of each head by the angle of its position: (a cos - b sin, a sin + b cos).
//   x                     [B, heads, S, E], or [B, S, heads * E] with num_heads  floats
//   cos_cache, sin_cache  [positions, R / 2] with position_ids, else [B, S, R / 2]  as x
//   position_ids          [B, S], optional  i64, in [0, positions)
//   interleaved int, default 0: pairs are elements (i, i + R / 2) of a head; 1: (2 i, 2 i + 1)
//   num_heads int, default 0, required for rank 3; rotary_embedding_dim int R, default 0, which is E; even
//   y                     as x; elements of a head from R on are x's
// In double, one rounding. NaN and infinities go through products and sums as IEEE 754 has them. Source: ONNX
// RotaryEmbedding, opset 23.
#include "ops/lines.h"

namespace pinnace {
namespace {
struct Heads {
  Dim B, S, count, E;
};
Heads heads_of(const NodeView& node) {
  const Shape& x = node.input(0).shape;
  if (x.size() == 4) return {x[0], x[2], x[1], x[3]};
  const int64_t heads = node.attr_int("num_heads");
  return {x[0], x[1], heads, x[2].known() ? Dim(x[2].size / heads) : Dim()};
}

Result<TensorType> rotary_embedding_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const int64_t heads = node.attr_int("num_heads"), wanted = node.attr_int("rotary_embedding_dim");
  if (x.rank() != 3 && x.rank() != 4) return node.error("x is ", x, ", must have rank 3 or 4");
  if (x.rank() == 3 && (heads < 1 || (x.shape[2].known() && x.shape[2].size % heads))) {
    return node.error("num_heads ", heads, " does not divide x ", x);
  }
  const Heads h = heads_of(node);
  const Dim R = wanted ? Dim(wanted) : h.E;
  if (wanted < 0 || (R.known() && (R.size % 2 || (h.E.known() && R.size > h.E.size)))) {
    return node.error("rotary_embedding_dim ", wanted, " must be even and at most a head's size, x is ", x);
  }
  const bool by_position = node.has_input(3);
  const Dim half = R.known() ? Dim(R.size / 2) : Dim();
  for (int i = 1; i < 3; ++i) {
    const Shape& cache = node.input(i).shape;
    bool fits = cache.size() == (by_position ? 2u : 3u) && !differ(cache.back(), half);
    if (fits && !by_position) fits = !differ(cache[0], h.B) && !differ(cache[1], h.S);
    if (fits && by_position) fits = !differ(cache[0], node.input(1).shape[0]);
    if (!fits) return node.error(i == 1 ? "cos_cache " : "sin_cache ", node.input(i), " does not fit x ", x);
  }
  if (by_position) {
    const Shape& ids = node.input(3).shape;
    if (ids.size() != 2 || differ(ids[0], h.B) || differ(ids[1], h.S)) {
      return node.error("position_ids ", node.input(3), " must have one element per position of x ", x);
    }
  }
  return same_type(node);
}

Status rotary_embedding_reference(const NodeView& node, std::span<const TensorView> in,
                                  std::span<const TensorView> out) {
  const Heads h = heads_of(node);
  const int64_t B = h.B.size, S = h.S.size, E = h.E.size, count = E ? h.count.size : 0;
  const int64_t R = node.attr_int("rotary_embedding_dim") ? node.attr_int("rotary_embedding_dim") : E, half = R / 2;
  const bool by_position = in.size() > 3 && in[3].present(), pairs = node.attr_int("interleaved") != 0;
  const double cost = 5 * static_cast<double>(count * E);
  return node.threads().ranges(B * S, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto head, Scratch<double>::allocate(E, "rotary_embedding's head"));
    PINNACE_ASSIGN(auto turn, Scratch<double>::allocate(R, "rotary_embedding's angles"));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position = by_position ? in[3].data<int64_t>()[row] : row;
      if (by_position && (position < 0 || position >= in[1].dim(0))) {
        return node.error("position_ids has ", position, ", must be in [0, ", in[1].dim(0), ")");
      }
      load_line(in[1], position * half, 1, half, turn.data());
      load_line(in[2], position * half, 1, half, turn.data() + half);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t first = in[0].rank() == 4 ? ((row / S * count + k) * S + row % S) * E : (row * count + k) * E;
        load_line(in[0], first, 1, E, head.data());
        for (int64_t i = 0; i < half; ++i) {
          double &a = head[pairs ? 2 * i : i], &b = head[pairs ? 2 * i + 1 : i + half];
          const double cosine = turn[i], sine = turn[half + i], real = cosine * a - sine * b;
          b = sine * a + cosine * b;
          a = real;
        }
        store_line(out[0], first, 1, E, head.data());
      }
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(rotary_embedding){
    .name = "rotary_embedding",
    .inputs = {{"x", kFloats, 'T'},
               {"cos_cache", kFloats, 'T'},
               {"sin_cache", kFloats, 'T'},
               {"position_ids", kI64, 0, Arity::kOptional}},
    .attrs = {int_attr("interleaved", 0), int_attr("num_heads", 0), int_attr("rotary_embedding_dim", 0)},
    .type = rotary_embedding_type,
    .reference = rotary_embedding_reference,
    .in_place = 1,
};
}  // namespace pinnace
