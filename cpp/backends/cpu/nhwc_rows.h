// Rows of NHWC-packed tensors dealt to threads, and which inputs are images: what kernels over NHWC-packed tensors
// share.
#pragma once

#include <algorithm>

#include "backends/cpu/kernel.h"

namespace pinnace::cpu {

/// Rows of pixels that one task takes, so that it has about 16,384 elements.
template <class T>
int64_t rows_per_task(const NhwcOf<T>& y) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, y.size.w * y.pitch));
}

/// f(batch item n, row) for every row of y.
template <class T, class F>
void for_rows(const KernelContext& context, const NhwcOf<T>& y, F f) {
  const int64_t rows = y.size.n * y.size.h, each = rows_per_task(y);
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(rows, (t + 1) * each); ++u) f(u / y.size.h, u % y.size.h);
  });
}

/// The same of 8-bit NHWC-packed tensors, in tasks of about 64 KiB.
template <class F>
void for_rows_i8(const KernelContext& context, const NhwcI8& y, F f) {
  const int64_t rows = y.size.n * y.size.h;
  const int64_t tasks = std::min(rows, (rows * y.size.w * y.pitch + 65535) / 65536);
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t u = rows * t / tasks; u < rows * (t + 1) / tasks; ++u) f(u / y.size.h, u % y.size.h);
  });
}

inline bool is_nhwc_input(const KernelNode& node, int i) {
  return has_nhwc_sizes(node.input(i)) && node.input(i).elements() > 0;
}

/// The same of 8-bit NHWC-packed tensors. Constants stay dense.
inline bool is_nhwc_input_i8(const KernelNode& node, int i) {
  const TensorType& type = node.input(i);
  return has_nhwc_sizes(type) && type.elements() > 0 && fits_nhwc_i8(type) && !node.input_data(i);
}

}  // namespace pinnace::cpu
