// Splits of chains of functions and of look-ups in tables.
#include "backends/gpu/splitting/splitter.h"
#include "backends/gpu/unary/params.h"

namespace pinnace::gpu::splitting {
void split_elementwise(Splitter& c) {
  const auto constants = c.constants<ElementwiseConstants>();
  bool by_image = constants.MASK != 0;
  for (const int64_t mode : constants.M) by_image |= mode == 2;
  const VectorFields fields = {PINNACE_FIELD(ElementwiseParams, count), PINNACE_FIELD(ElementwiseParams, pixels),
                               PINNACE_FIELD(ElementwiseParams, blocks),
                               PINNACE_FIELD(ElementwiseParams, operand_images)};
  split_vectors(c, by_image, fields, [&c, &constants](int64_t vectors, int64_t channels) {
    std::vector<UnitWindow> windows(6, run(vectors * c.vector()));
    for (size_t k = 0; k < 4; ++k) {
      const int64_t mode = constants.M[k];
      if (mode == 0) windows[2 + k] = kUnread;
      if (mode == 2) windows[2 + k] = run(channels * c.vector());
      if (mode == 3) windows[2 + k] = kWhole;
    }
    return windows;
  });
}

void split_int8_table(Splitter& c) {
  const RunFields fields = {PINNACE_FIELD(Int8TableParams, count),      PINNACE_FIELD(Int8TableParams, run),
                            PINNACE_FIELD(Int8TableParams, from_image), PINNACE_FIELD(Int8TableParams, from),
                            PINNACE_FIELD(Int8TableParams, to_image),   PINNACE_FIELD(Int8TableParams, to)};
  // Without a table x is bound in its place.
  split_runs(
      c, fields, 0, 2, 4,
      c.constants<Int8TableConstants>().TABLE ? std::vector<UnitWindow>{} : std::vector<UnitWindow>{kWhole, kUnread});
}

}  // namespace pinnace::gpu::splitting
