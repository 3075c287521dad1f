// Splits of casts.
#include "backends/gpu/cast/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
void split_from_int32(Splitter& c) {
  split_items(c, PINNACE_FIELD(FromInt32Params, count), {run(4), run(c.element())});
}

}  // namespace pinnace::gpu::splitting
