// What resize kernels of every element type ask of a node.
#include "backends/cpu/resize/resize_sizes.h"

namespace pinnace::cpu {

bool resize_sizes(const KernelNode& node, ResizeSizes* sizes, std::vector<ResizeAxis>* axes, ResizeSpec* spec) {
  const TensorType& x = node.input(0);
  const auto attributes = resize_spec(node);
  const auto planned = resize_axes(node);
  if (!attributes.ok() || !planned.ok() || x.rank() < 1 || x.elements() < 1 || x.elements() > INT32_MAX) return false;
  *spec = *attributes;
  if (spec->coordinates == ResizeCoordinates::kTfCropAndResize) return false;
  for (int i = 0; i < 2; ++i) {
    const int d = x.rank() - 2 + i;
    if (d >= 0) sizes->in[i] = sizes->out[i] = x.shape[static_cast<size_t>(d)].size;
  }
  for (const ResizeAxis& a : *planned) {
    if (a.identity(*spec)) continue;
    const int i = a.axis - (x.rank() - 2);
    if (i < 0 || a.out < 1 || a.out > INT32_MAX / 2) return false;
    if (x.rank() == 1 && i == 0) return false;
    sizes->out[i] = a.out;
    sizes->resized[i] = true;
    axes->push_back(a);
  }
  return true;
}

bool resize_takes(const KernelNode& node) {
  ResizeSizes sizes;
  std::vector<ResizeAxis> axes;
  ResizeSpec spec;
  return resize_sizes(node, &sizes, &axes, &spec);
}

bool resize_nhwc_takes(const KernelNode& node) {
  ResizeSizes sizes;
  std::vector<ResizeAxis> axes;
  ResizeSpec spec;
  if (!has_nhwc_sizes(node.input(0)) || !resize_sizes(node, &sizes, &axes, &spec)) return false;
  return node.input(0).rank() == 4 || !sizes.resized[0];  // [N, C, W]: dimension -2 is the channels
}

}  // namespace pinnace::cpu
