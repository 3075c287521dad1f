// Splits of gathers and of places of indices.
#include "backends/gpu/index/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
void split_gather(Splitter& c) {
  using P = GatherParams;
  const Field count = PINNACE_FIELD(P, count);
  const P& params = c.params<P>();
  const int64_t bytes = c.step().kernel.id == KernelId::gather ? c.element() : 4;
  const int64_t indices = params.indices, inner = params.inner, size = params.size, held = params.held;
  const int64_t outer = params.count / (indices * inner);
  if (params.count > indices * inner) {
    c.add(outer, {run(size * inner * bytes), kWhole, run(indices * inner * bytes)},
          [=](Step& s, int64_t, int64_t n) { set_line(s, count, n * indices * inner); });
  } else {
    c.add(indices, {kWhole, run(4), run(inner * bytes)}, [=](Step& s, int64_t, int64_t n) {
      set_line(s, count, n * inner);
      s.params<P>().indices = n;
    });
    // Each sub-dispatch writes what its places have.
    c.add(held, {run(inner * bytes)}, [](Step& s, int64_t first, int64_t n) {
      P& own = s.params<P>();
      own.first = own.first + first;
      own.held = n;
    });
  }
  split_inner(c, inner, {{0, outer * held, bytes}, {2, outer * indices, bytes}}, [=](Step& s, int64_t n) {
    set_line(s, count, outer * indices * n);
    s.params<P>().inner = n;
  });
}

void split_place(Splitter& c) {
  using P = PlaceParams;
  bool based = false;  // whether a place depends on which one it is
  for (const int64_t base : c.params<P>().base) based |= base != 0;
  if (!based) split_items(c, PINNACE_FIELD(P, count), {run(c.params<P>().tuple * 4), run(4), kWhole});
}

}  // namespace pinnace::gpu::splitting
