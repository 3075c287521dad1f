// Splits of top_k, by slices.
#include "backends/gpu/sort/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
void split_top_k(Splitter& c) {
  using P = TopKParams;
  const P& params = c.params<P>();
  const bool floats = c.step().kernel.id == KernelId::top_k;
  const int64_t bytes = floats ? c.element() : 4;
  const bool values = (floats ? c.constants<TopKConstants>().VALUES : c.constants<TopKInt32Constants>().VALUES) != 0;
  const int64_t slice = params.inner, made = params.k * slice;
  split_slices(c, {PINNACE_FIELD(P, slices), PINNACE_FIELD(P, size), PINNACE_FIELD(P, inner)},
               {run(params.size * slice * bytes), values ? run(made * bytes) : kUnread, run(made * 4)},
               {params.size, params.k, params.k});
  if (params.first == 0 && params.last == params.k) return;
  // Several dispatches write one tensor, and each reads the last place of the one before: a copy of a part of it would
  // lack what the others have written.
  std::erase_if(c.all, [](const Split& split) { return split.copies; });
  for (Split& split : c.all) {
    split.take = [take = std::move(split.take)](SubDispatch& part, int64_t first, int64_t count) {
      take(part, first, count);
      for (BindingView& view : part.views) view.own = false;
    };
  }
}

}  // namespace pinnace::gpu::splitting
