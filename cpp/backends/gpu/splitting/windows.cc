// Splits along rows and columns of results: what windows of them see of the input, halo included, lies in as many
// places as there are planes, so that sub-dispatches read and write copies. A window's padding moves by what is left
// out.
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

/// Places [from, from + count) of an input.
struct Seen {
  int64_t from, count;
};

int64_t floor_divide(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// What outputs [first, first + n) see; where they see nothing but padding, any one place.
Seen seen_by(const WindowAxis& axis, int64_t first, int64_t n) {
  const int64_t reach = (axis.taps - 1) * axis.dilation;
  int64_t from, end;
  if (axis.transposed) {
    from = -floor_divide(reach - first - axis.pad, axis.stride);  // rounded up
    end = floor_divide(first + n - 1 + axis.pad, axis.stride) + 1;
  } else {
    from = first * axis.stride - axis.pad;
    end = (first + n - 1) * axis.stride - axis.pad + reach + 1;
  }
  from = std::clamp<int64_t>(from, 0, axis.in - 1);
  end = std::clamp<int64_t>(end, from + 1, axis.in);
  return {from, end - from};
}

/// Elements [from, from + count) along dimension d of every plane of a dense tensor [planes, size...].
void copy_planes(SubDispatch& p, size_t b, int64_t planes, const std::array<int64_t, 3>& size, size_t d, Seen seen,
                 int64_t bytes) {
  StridedRegion s{0, bytes, {1, 1, planes, size[0], size[1], size[2]}, {}};
  s.stride = {0, 0, size[0] * size[1] * size[2] * bytes, size[1] * size[2] * bytes, size[2] * bytes, bytes};
  s.from = seen.from * s.stride[3 + d];
  s.size[3 + d] = seen.count;
  int64_t outer = planes;
  for (size_t i = 0; i < d; ++i) outer *= size[i];
  if (outer == 1) {  // they lie together
    narrow(p, b, s.from, s.count() * bytes);
    p.views[b].own = true;
  } else {
    copy_region(p, b, s);
  }
}

}  // namespace

void split_windows(Splitter& c, const WindowedStep& v,
                   const std::function<void(Step&, size_t d, int64_t n)>& set_groups) {
  std::array<int64_t, 3> in{}, out{};
  for (size_t d = 0; d < 3; ++d) {
    in[d] = v.axes[d].in;
    out[d] = v.axes[d].out;
  }
  for (size_t d = 0; d < 3; ++d) {
    const WindowAxis axis = v.axes[d];
    if (axis.out < 2 || axis.in < 1) continue;
    int64_t outer = std::max(v.planes_in, v.planes_out);
    for (size_t i = 0; i < d; ++i) outer *= std::max(in[i], out[i]);
    c.all.push_back({axis.out,
                     [=](SubDispatch& p, int64_t first, int64_t n) {
                       const Seen seen = seen_by(axis, first, n);
                       copy_planes(p, 0, v.planes_in, in, d, seen, v.bytes);
                       for (const size_t b : v.results) {
                         copy_planes(p, b, v.planes_out, out, d, {first, n}, v.bytes);
                       }
                       if (v.unread) narrow(p, *v.unread, 0, 16);
                       set(p, axis.in_field, seen.count);
                       set(p, axis.out_field, n);
                       const int64_t moved =
                           axis.transposed ? first - seen.from * axis.stride : seen.from - first * axis.stride;
                       set(p, axis.pad_field, axis.pad + moved);
                       if (axis.end_field) set(p, axis.end_field, get(p, axis.end_field) - seen.from);
                       set_groups(p, d, n);
                     },
                     outer > 1});
  }
}

WindowAxis image_axis(const Splitter& c, const ImageFields& sizes, size_t d, int64_t taps, int64_t stride, Field pad,
                      Field dilation, bool transposed) {
  const Field in = d == 1 ? sizes.H : sizes.W, out = d == 1 ? sizes.OH : sizes.OW;
  return {c.get(in), c.get(out), taps, stride, c.get(pad), c.get(dilation), in, out, pad, {}, transposed};
}

void split_inner(Splitter& c, int64_t inner, const std::vector<InnerBinding>& all,
                 std::function<void(Step&, int64_t n)> set) {
  size_t last = 0;
  for (const InnerBinding& b : all) last = std::max(last, b.binding + 1);
  std::vector<UnitWindow> windows(last);
  for (const InnerBinding& b : all) {
    windows[b.binding] = b.slices ? column(b.bytes, b.slices, inner * b.bytes) : kUnread;
  }
  c.add(inner, std::move(windows), [set = std::move(set)](Step& s, int64_t, int64_t n) { set(s, n); });
}

}  // namespace pinnace::gpu::splitting
