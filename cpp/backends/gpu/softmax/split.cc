// Splits of softmax, by lanes.
#include "backends/gpu/softmax/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
void split_softmax(Splitter& c) {
  using P = SoftmaxParams;
  const UnitWindow lane = run(c.params<P>().size * c.params<P>().inner * c.element());
  split_lanes(c, {PINNACE_FIELD(P, lanes), PINNACE_FIELD(P, size), PINNACE_FIELD(P, inner)}, {lane, lane});
}

void split_int8_softmax(Splitter& c) {
  using P = Int8SoftmaxParams;
  const UnitWindow lane = run(c.params<P>().size * c.params<P>().inner * 4);
  split_lanes(c, {PINNACE_FIELD(P, lanes), PINNACE_FIELD(P, size), PINNACE_FIELD(P, inner)}, {lane, kWhole, lane});
}

}  // namespace pinnace::gpu::splitting
