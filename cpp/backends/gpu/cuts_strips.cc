// Cuts along rows and columns of results: what windows of them see of the input, halo included, lies in as many places
// as there are planes, so that parts read and write copies of strips. A window's padding moves by what is left out.
#include "backends/gpu/cut_walks.h"

namespace pinnace::gpu::cut {
namespace {

/// Places [from, from + count) of an input.
struct Seen {
  int64_t from, count;
};

int64_t floor_divide(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// What outputs [first, first + n) see; where they see nothing but padding, any one place.
Seen seen_by(const Line& line, int64_t first, int64_t n) {
  const int64_t reach = (line.taps - 1) * line.dilation;
  int64_t from, end;
  if (line.transposed) {
    from = -floor_divide(reach - first - line.pad, line.stride);  // rounded up
    end = floor_divide(first + n - 1 + line.pad, line.stride) + 1;
  } else {
    from = first * line.stride - line.pad;
    end = (first + n - 1) * line.stride - line.pad + reach + 1;
  }
  from = std::clamp<int64_t>(from, 0, line.in - 1);
  end = std::clamp<int64_t>(end, from + 1, line.in);
  return {from, end - from};
}

/// Elements [from, from + count) along dimension d of every plane of a dense tensor [planes, size...].
void strip_planes(Part& p, size_t b, int64_t planes, const std::array<int64_t, 3>& size, size_t d, Seen seen,
                  int64_t bytes) {
  Strip s{0, bytes, {1, 1, planes, size[0], size[1], size[2]}, {}};
  s.stride = {0, 0, size[0] * size[1] * size[2] * bytes, size[1] * size[2] * bytes, size[2] * bytes, bytes};
  s.from = seen.from * s.stride[3 + d];
  s.size[3 + d] = seen.count;
  int64_t outer = planes;
  for (size_t i = 0; i < d; ++i) outer *= size[i];
  if (outer == 1) {  // they lie together
    narrow(p, b, s.from, s.count() * bytes);
    p.views[b].own = true;
  } else {
    strip(p, b, s);
  }
}

}  // namespace

void window_strips(Cuts& c, const Windows& v, const std::function<void(Step&, size_t d, int64_t n)>& set) {
  std::array<int64_t, 3> in{}, out{};
  for (size_t d = 0; d < 3; ++d) {
    in[d] = v.lines[d].in;
    out[d] = v.lines[d].out;
  }
  for (size_t d = 0; d < 3; ++d) {
    const Line line = v.lines[d];
    if (line.out < 2 || line.in < 1) continue;
    int64_t outer = std::max(v.planes_in, v.planes_out);
    for (size_t i = 0; i < d; ++i) outer *= std::max(in[i], out[i]);
    c.all.push_back({line.out,
                     [=](Part& p, int64_t first, int64_t n) {
                       const Seen seen = seen_by(line, first, n);
                       strip_planes(p, 0, v.planes_in, in, d, seen, v.bytes);
                       for (const size_t b : v.results) {
                         strip_planes(p, b, v.planes_out, out, d, {first, n}, v.bytes);
                       }
                       if (v.unread) narrow(p, *v.unread, 0, 16);
                       put(p, line.in_word, seen.count);
                       put(p, line.out_word, n);
                       const int64_t moved =
                           line.transposed ? first - seen.from * line.stride : seen.from - first * line.stride;
                       put(p, line.pad_word, line.pad + moved);
                       if (line.end_word) put(p, line.end_word, get(p, line.end_word) - seen.from);
                       set(p, d, n);
                     },
                     outer > 1});
  }
}

Line image_line(const Cuts& c, size_t d, int64_t taps, int64_t stride, size_t pad_word, size_t dilation_word,
                bool transposed) {
  const size_t in = d - 1, out = d + 1;  // H, W, OH, OW are the first words; d is 1 or 2
  return {c.word(in), c.word(out), taps,     stride, c.word(pad_word), c.word(dilation_word),
          in,         out,         pad_word, 0,      transposed};
}

void lane_strips(Cuts& c, int64_t inner, const std::vector<Lane>& all, std::function<void(Step&, int64_t n)> set) {
  size_t last = 0;
  for (const Lane& lane : all) last = std::max(last, lane.binding + 1);
  std::vector<Walk> walks(last);
  for (const Lane& lane : all) {
    walks[lane.binding] = lane.slices ? column(lane.bytes, lane.slices, inner * lane.bytes) : kUnread;
  }
  c.add(inner, std::move(walks), [set = std::move(set)](Step& s, int64_t, int64_t n) { set(s, n); });
}

}  // namespace pinnace::gpu::cut
