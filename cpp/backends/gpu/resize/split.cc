// Splits of resizes, by planes.
#include "backends/gpu/resize/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

template <class P>
constexpr ImageFields fields_of() {
  return {PINNACE_FIELD(P, H), PINNACE_FIELD(P, W), PINNACE_FIELD(P, OH), PINNACE_FIELD(P, OW)};
}

}  // namespace

void split_resize(Splitter& c) {
  split_planes(c, fields_of<ResizeParams>(), c.vector(), 2);
}

void split_int8_resize(Splitter& c) {
  split_planes(c, fields_of<Int8ResizeParams>(), 4, 3);
}

}  // namespace pinnace::gpu::splitting
