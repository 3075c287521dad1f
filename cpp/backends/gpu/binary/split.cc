// Splits of arithmetic, comparisons and choices.
#include "backends/gpu/binary/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

/// Operands 0 and 1 of so many bytes an element, and a dense result.
template <class P>
void split_pair(Splitter& c, int64_t bytes, DenseResult result) {
  split_strided(c, {PINNACE_FIELD(P, count), PINNACE_FIELD(P, sizes)},
                {{0, PINNACE_FIELD(P, a), {}, bytes}, {1, PINNACE_FIELD(P, b), {}, bytes}}, result);
}

void split_choice(Splitter& c, int64_t bytes) {
  using P = SelectParams;
  split_strided(c, {PINNACE_FIELD(P, count), PINNACE_FIELD(P, sizes)},
                {{0, PINNACE_FIELD(P, c), {}, 4},
                 {1, PINNACE_FIELD(P, a_strides), PINNACE_FIELD(P, a), bytes},
                 {2, PINNACE_FIELD(P, b_strides), PINNACE_FIELD(P, b), bytes}},
                DenseResult{3, bytes});
}

}  // namespace

void split_int8_pair(Splitter& c) {
  using P = Int8PairParams;
  const bool channel = c.constants<Int8PairConstants>().CHANNEL == 1;
  const VectorFields fields = {PINNACE_FIELD(P, count), PINNACE_FIELD(P, pixels), PINNACE_FIELD(P, blocks),
                               PINNACE_FIELD(P, b_images)};
  split_vectors(c, channel, fields, [channel](int64_t vectors, int64_t channels) {
    return std::vector<UnitWindow>{run(vectors * 4), run((channel ? channels : vectors) * 4), kWhole, run(vectors * 4)};
  });
}

void split_int8_pair_dense(Splitter& c) {
  split_pair<Int8PairDenseParams>(c, 4, {3, 4});
}

void split_compare(Splitter& c) {
  split_pair<PairParams>(c, c.element(), {2, 4});
}

void split_elementwise_broadcast(Splitter& c) {
  split_pair<ElementwiseBroadcastParams>(c, c.element(), {2, c.element()});
}

void split_elementwise_int32(Splitter& c) {
  split_pair<PairParams>(c, 4, {2, 4});
}

void split_select(Splitter& c) {
  split_choice(c, c.element());
}

void split_select_int32(Splitter& c) {
  split_choice(c, 4);
}

}  // namespace pinnace::gpu::splitting
