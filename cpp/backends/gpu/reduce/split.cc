// Splits of reductions, by rows, and of running sums, by slices.
#include "backends/gpu/reduce/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

struct ReduceFields {
  Field rows, size;
  std::array<Field, 3> kept_sizes;  ///< of the first of them there is none: it is what is left of `rows`
  Field kept;                       ///< strides
  std::array<Field, 3> reduced_sizes;
  Field reduced;
};
template <class P>
constexpr ReduceFields fields_of() {
  return {PINNACE_FIELD(P, rows),
          PINNACE_FIELD(P, size),
          {Field(), PINNACE_FIELD(P, k1), PINNACE_FIELD(P, k2)},
          PINNACE_FIELD(P, kept),
          {Field(), PINNACE_FIELD(P, r1), PINNACE_FIELD(P, r2)},
          PINNACE_FIELD(P, reduced)};
}
constexpr ReduceFields kFields = fields_of<ReduceParams>(), kInt8Fields = fields_of<Int8ReduceParams>();

std::array<int64_t, 3> sizes_of(const Splitter& c, Field all, const std::array<Field, 3>& sizes) {
  const int64_t one = c.get(sizes[1]), two = c.get(sizes[2]);
  return {c.get(all) / (one * two), one, two};
}

/// Rows over up to three strided dimensions, of which the outermost is split; so many rows per group.
void split_rows(Splitter& c, const ReduceFields& f, int64_t bytes, uint32_t group = 1) {
  const std::array<int64_t, 3> k = sizes_of(c, f.rows, f.kept_sizes), r = sizes_of(c, f.size, f.reduced_sizes);
  int64_t reach = 1;
  for (size_t d = 0; d < 3; ++d) reach += std::max<int64_t>(0, r[d] - 1) * c.get(f.reduced[d]);
  size_t d = 0;
  while (d < 2 && k[d] == 1) ++d;
  int64_t inner = 1;
  for (size_t i = d + 1; i < 3; ++i) {
    reach += (k[i] - 1) * c.get(f.kept[i]);
    inner *= k[i];
  }
  std::vector<UnitWindow> windows = {{c.get(f.kept[d]) * bytes, reach * bytes}, run(inner * bytes)};
  const auto& bound = c.step().bindings;
  const bool nothing_to_report = bound.size() > 2 && bound[2] == bound[1];
  if (nothing_to_report) windows.push_back(kUnread);
  c.add(k[d], std::move(windows), [=](Step& s, int64_t, int64_t n) {
    set(s, f.rows, n * inner);
    if (d > 0) set(s, f.kept_sizes[d], n);
    s.groups = line_groups(n * inner, group);
  });
  // What the rows of a sub-dispatch have, in their order.
  StridedRegion all{0, bytes, {k[0], k[1], k[2], r[0], r[1], r[2]}, {}};
  for (size_t i = 0; i < 6; ++i) all.stride[i] = c.get(i < 3 ? f.kept[i] : f.reduced[i - 3]) * bytes;
  for (size_t along = 0; along < 3; ++along) {
    int64_t outer = 1, each = 1;
    for (size_t i = 0; i < 3; ++i) (i < along ? outer : each) *= i == along ? 1 : k[i];
    c.add_copies(k[along], [=](SubDispatch& p, int64_t first, int64_t n) {
      StridedRegion some = all;
      some.from = first * all.stride[along];
      some.size[along] = n;
      copy_region(p, 0, some);
      int64_t stride = 1;
      for (size_t i = 6; i-- > 0; stride *= some.size[i]) set(p, i < 3 ? f.kept[i] : f.reduced[i - 3], stride);
      if (along > 0) set(p, f.kept_sizes[along], n);
      set(p, f.rows, outer * n * each);
      p.groups = line_groups(outer * n * each, group);
      if (nothing_to_report) narrow(p, 2, 0, 16);
      if (outer > 1) return copy_region(p, 1, first * each * bytes, outer, k[along] * each * bytes, n * each * bytes);
      narrow(p, 1, first * each * bytes, n * each * bytes);
      p.views[1].own = true;
    });
  }
}

constexpr SliceFields kSlices = {PINNACE_FIELD(CumSumParams, slices), PINNACE_FIELD(CumSumParams, size),
                                 PINNACE_FIELD(CumSumParams, inner)};
UnitWindow slice_of(const Splitter& c, int64_t bytes) {
  return run(c.params<CumSumParams>().size * c.params<CumSumParams>().inner * bytes);
}

}  // namespace

void split_reduce(Splitter& c) {
  split_rows(c, kFields, c.element());
}

void split_reduce_int32(Splitter& c) {
  split_rows(c, kFields, 4);
}

void split_int8_reduce(Splitter& c) {
  split_rows(c, kInt8Fields, 4);
}

void split_int8_reduce_ordered(Splitter& c) {
  split_rows(c, kInt8Fields, 4, 64);
}

void split_cum_sum(Splitter& c) {
  const UnitWindow slice = slice_of(c, c.element());
  split_slices(c, kSlices, {slice, slice});
}

void split_cum_sum_int32(Splitter& c) {
  const UnitWindow slice = slice_of(c, 4);
  const std::vector<TensorId>& bound = c.step().bindings;
  split_slices(c, kSlices, {slice, slice, bound[2] == bound[1] ? kUnread : kWhole});
}

}  // namespace pinnace::gpu::splitting
