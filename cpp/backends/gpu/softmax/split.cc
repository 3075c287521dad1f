// Splits of softmax, by slices.
#include "backends/gpu/softmax/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
void split_softmax(Splitter& c) {
  using P = SoftmaxParams;
  const UnitWindow slice = run(c.params<P>().size * c.params<P>().inner * c.element());
  split_slices(c, {PINNACE_FIELD(P, slices), PINNACE_FIELD(P, size), PINNACE_FIELD(P, inner)}, {slice, slice});
}

void split_int8_softmax(Splitter& c) {
  using P = Int8SoftmaxParams;
  const UnitWindow slice = run(c.params<P>().size * c.params<P>().inner * 4);
  split_slices(c, {PINNACE_FIELD(P, slices), PINNACE_FIELD(P, size), PINNACE_FIELD(P, inner)}, {slice, kWhole, slice});
}

}  // namespace pinnace::gpu::splitting
