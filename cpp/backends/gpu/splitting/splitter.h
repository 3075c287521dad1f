// What the families' split.cc share: windows of bindings, push constants by name, and splits along what several kernels
// have.
#pragma once

#include <algorithm>
#include <optional>

#include "backends/gpu/splitting/splits.h"

namespace pinnace::gpu::splitting {

/// Bytes [first, first + bytes) of what binding b saw.
inline void narrow(Step& s, size_t b, int64_t first, int64_t bytes) {
  Extent& w = s.windows[b];
  const size_t from = std::min(w.bytes, static_cast<size_t>(first));
  w.offset += from;
  w.bytes = std::min(w.bytes - from, static_cast<size_t>(bytes));
}

/// Binding b becomes a copy of the region, of which `from` is counted from where its window begins.
inline void copy_region(SubDispatch& p, size_t b, StridedRegion of) {
  of.from += static_cast<int64_t>(p.windows[b].offset);
  p.windows[b].bytes = static_cast<size_t>(of.count() * of.bytes);
  p.views[b].region = of;
}
/// The same of `slices` that lie `apart`: `run` bytes of each, from `from` on.
inline void copy_region(SubDispatch& p, size_t b, int64_t from, int64_t slices, int64_t apart, int64_t run) {
  const int64_t bytes = (from | apart | run) % 4 == 0 ? 4 : 2;
  copy_region(p, b, {from, bytes, {1, 1, 1, 1, slices, run / bytes}, {0, 0, 0, 0, apart, bytes}});
}

/// What units take of a binding: unit i begins at i * step and takes `reach` bytes; of several slices that lie `apart`
/// the same of each.
struct UnitWindow {
  int64_t step = 0, reach = 0, slices = 1, apart = 0;
};
inline constexpr UnitWindow kWhole{};
inline constexpr UnitWindow kUnread{0, 16};  ///< something must be bound
/// Unit after unit, of so many bytes each.
constexpr UnitWindow run(int64_t bytes) {
  return {bytes, bytes};
}
/// A column of `slices` rows.
constexpr UnitWindow column(int64_t bytes, int64_t slices, int64_t apart) {
  return {bytes, bytes, slices, apart};
}

/// Collects the splits of a step.
class Splitter {
 public:
  explicit Splitter(const Step& step) : step_(step), s_(step.kernel.f16 ? 2 : 4) {}

  const Step& step() const { return step_; }
  template <class P>
  const P& params() const {
    return step_.params<P>();
  }
  int64_t get(Field field) const { return gpu::get(step_, field); }
  template <class C>
  C constants() const {
    return step_.kernel.constants<C>();
  }
  int64_t element() const { return s_; }     ///< bytes of an element in the storage type
  int64_t vector() const { return 4 * s_; }  ///< and of four
  int64_t groups(size_t d) const { return step_.groups[d]; }

  /// windows: one per binding. set: push constants and groups of a sub-dispatch.
  void add(int64_t units, std::vector<UnitWindow> windows,
           std::function<void(Step&, int64_t first, int64_t count)> set) {
    if (units < 2) return;
    const bool copies = std::any_of(windows.begin(), windows.end(), [](const UnitWindow& w) { return w.slices > 1; });
    all.push_back({units,
                   [windows = std::move(windows), set = std::move(set)](SubDispatch& p, int64_t first, int64_t count) {
                     for (size_t b = 0; b < windows.size(); ++b) {
                       const UnitWindow& w = windows[b];
                       const int64_t bytes = (count - 1) * w.step + w.reach;
                       if (w.slices > 1) {
                         copy_region(p, b, first * w.step, w.slices, w.apart, bytes);
                       } else if (w.reach) {
                         narrow(p, b, first * w.step, bytes);
                         p.views[b].own = w.step == w.reach;
                       }
                     }
                     set(p, first, count);
                   },
                   copies});
  }

  /// Sub-dispatches that work on copies.
  void add_copies(int64_t units, std::function<void(SubDispatch&, int64_t first, int64_t count)> take) {
    if (units > 1) all.push_back({units, std::move(take), true});
  }

  std::vector<Split> all;

 private:
  const Step& step_;
  int64_t s_;
};

/// Sets a count and the groups of a line of 64 invocations each.
inline void set_line(Step& s, Field count, int64_t items) {
  set(s, count, items);
  s.groups = line_groups(items, 64);
}
inline void planes_in_z(Step& s, int64_t planes) {
  s.groups[2] = static_cast<uint32_t>(planes);
}

/// A window that begins with an element: it begins at or before it, where windows may, and the rest goes to a field.
inline void begin_at(Step& s, size_t b, Field base, int64_t element, int64_t elements, int64_t bytes) {
  constexpr int64_t kLargestAlignment = 256;
  const int64_t from = element * bytes / kLargestAlignment * kLargestAlignment, rest = element - from / bytes;
  narrow(s, b, from, (rest + elements) * bytes);
  set(s, base, rest);
}

// ---- windows.cc

/// One dimension of windows and the push constants that say where it is; end: where the padded input ends, if there is
/// one.
struct WindowAxis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, pad = 0, dilation = 1;
  Field in_field{}, out_field{}, pad_field{}, end_field{};
  bool transposed = false;  ///< of the convolution whose transpose it is
};
/// Binding 0 is [planes_in, in...], results are [planes_out, out...], of elements of so many bytes.
struct WindowedStep {
  int64_t bytes, planes_in, planes_out;
  std::array<WindowAxis, 3> axes;
  std::vector<size_t> results;
  std::optional<size_t> unread{};  ///< a binding that stands for none
};
/// Along every dimension. set_groups: of a sub-dispatch of which dimension d has n outputs.
void split_windows(Splitter& c, const WindowedStep& v,
                   const std::function<void(Step&, size_t d, int64_t n)>& set_groups);

/// Sizes of an image and of the image that is made of it.
struct ImageFields {
  Field H, W, OH, OW;
};
/// d: 1 for rows, 2 for columns.
WindowAxis image_axis(const Splitter& c, const ImageFields& sizes, size_t d, int64_t taps, int64_t stride, Field pad,
                      Field dilation, bool transposed = false);

/// A binding of [slices, inner]; slices of 0: it is not read or written.
struct InnerBinding {
  size_t binding;
  int64_t slices, bytes;
};
/// Along `inner`, of which a sub-dispatch has n; set: push constants and groups.
void split_inner(Splitter& c, int64_t inner, const std::vector<InnerBinding>& all,
                 std::function<void(Step&, int64_t n)> set);

// ---- strided.cc

/// How many elements there are, and the sizes of dimensions 1 to 5.
struct StridedFields {
  Field count, sizes;
};
/// An operand of a strided kernel: the first of its six strides, and where it begins, if it has a place for that.
struct StridedOperand {
  size_t binding;
  Field strides, from;
  int64_t bytes;
};
/// A dense result.
struct DenseResult {
  size_t binding;
  int64_t bytes;  ///< of an element
};
/// Without a dense result every operand is strided.
void split_strided(Splitter& c, const StridedFields& fields, const std::vector<StridedOperand>& operands,
                   std::optional<DenseResult> dense);

// ---- lines.cc

/// A line of items; each binding has so many bytes per item.
void split_items(Splitter& c, Field count, std::vector<UnitWindow> windows);

/// A line of vectors of an NC4HW4 buffer, or of a dense tensor.
struct VectorFields {
  Field count, pixels, blocks;
  Field images;  ///< of the operand
};
/// `windows` for so many vectors, of which channel operands have the last number of elements; `by_image`: where a
/// vector lies in its image matters.
void split_vectors(Splitter& c, bool by_image, const VectorFields& fields,
                   const std::function<std::vector<UnitWindow>(int64_t vectors, int64_t channels)>& windows);

/// Runs of elements between places of images.
struct RunFields {
  Field count, run, from_image, from, to_image, to;
};
/// others: windows of bindings that are neither.
void split_runs(Splitter& c, const RunFields& fields, size_t from_binding, size_t to_binding, int64_t bytes,
                std::vector<UnitWindow> others = {});

struct SliceFields {
  Field slices, size, inner;
};
/// A workgroup per slice; windows for one outer index. lengths: elements of a slice of each binding, where they are not
/// size.
void split_slices(Splitter& c, const SliceFields& fields, std::vector<UnitWindow> windows,
                  const std::vector<int64_t>& lengths = {});

/// Planes of an image that are made one by one; they are groups along z. `blocks`: the planes of an image, where the
/// last one differs.
void split_planes(Splitter& c, const ImageFields& sizes, int64_t bytes, size_t result, Field blocks = {});

// ---- families, by the lines of their kernels

using SplitFunction = void (*)(Splitter&);
#define KERNEL(name, file, storage, defines, params, split) void split(Splitter&);
#include "backends/gpu/kernels.inc"
#undef KERNEL

}  // namespace pinnace::gpu::splitting
