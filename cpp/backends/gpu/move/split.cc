// Splits of copies.
#include "backends/gpu/move/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

void split_region(Splitter& c, int64_t bytes) {
  using P = MoveParams;
  split_strided(c, {PINNACE_FIELD(P, count), PINNACE_FIELD(P, sizes)},
                {{0, PINNACE_FIELD(P, from_strides), PINNACE_FIELD(P, from), bytes},
                 {1, PINNACE_FIELD(P, to_strides), PINNACE_FIELD(P, to), bytes}},
                {});
}

}  // namespace

void split_fill(Splitter& c) {
  split_items(c, PINNACE_FIELD(FillParams, count), {run(c.element())});
}

void split_fill_int32(Splitter& c) {
  split_items(c, PINNACE_FIELD(FillInt32Params, count), {run(4)});
}

void split_move(Splitter& c) {
  split_region(c, c.element());
}

void split_move_blocks(Splitter& c) {
  using P = MoveBlocksParams;
  const RunFields fields = {PINNACE_FIELD(P, count), PINNACE_FIELD(P, run),      PINNACE_FIELD(P, from_image),
                            PINNACE_FIELD(P, from),  PINNACE_FIELD(P, to_image), PINNACE_FIELD(P, to)};
  split_runs(c, fields, 0, 1, c.vector());
}

void split_move_int32(Splitter& c) {
  split_region(c, 4);
}

}  // namespace pinnace::gpu::splitting
