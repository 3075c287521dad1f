#version 450
// Boxes of x [N, C, H, W], each brought to one size: the mean (MAX 1: the largest of the samples' four weighted
// corners) of bilinear samples; one element of y [R, C, OH, OW] per invocation. Image numbers outside of N are
// reported, and boxes that are not finite or need more than 64 samples per bin and direction.
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "params.inc"
#define ERROR_RECORD 4
#include "prelude.glsl"
#include "error_record.glsl"
layout(local_size_x = 64) in;
ROI_ALIGN_CONSTANTS
layout(set = 0, binding = 0) readonly buffer X { S x[]; };
layout(set = 0, binding = 1) readonly buffer Rois { S rois[]; };
layout(set = 0, binding = 2) readonly buffer Images { int images[]; };
layout(set = 0, binding = 3) writeonly buffer Y { S y[]; };
layout(push_constant) uniform Params { ROI_ALIGN_PARAMS } p;
const int kMostSamples = 64;

bool finite(float v) { return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u; }

struct Extent {
  float start;
  float bin;
  int samples;
};
Extent extent_of(float first, float last, int bins, int ratio) {
  float start = first * p.scale - (HALF == 1 ? 0.5 : 0.0), end = last * p.scale - (HALF == 1 ? 0.5 : 0.0);
  float size = HALF == 1 ? end - start : max(end - start, 1.0);
  bool good = finite(size) && finite(start);
  Extent e = Extent(start, size / float(bins), ratio);
  float wanted = ceil(e.bin);
  if (ratio == 0) {
    good = good && wanted <= float(kMostSamples);
    e.samples = good && wanted > 0.0 ? int(wanted) : 0;
  }
  if (!good) {
    report(kBoxOutside, 0, 0);
    e = Extent(0.0, 0.0, 0);
  }
  return e;
}
struct Pair {
  bool outside;
  int low;
  int high;
  float weight_low;
  float weight_high;
};
Pair neighbours(float at, int size) {
  if (EDGE == 1) at = min(at, float(size));
  bool outside = EDGE == 0 && !(at >= -1.0 && at <= float(size));
  at = clamp(at, 0.0, float(size));
  int low = min(int(at), size - 1);
  if (low == size - 1) return Pair(outside, low, low, 1.0, 0.0);
  float above = at - float(low);
  return Pair(outside, low, low + 1, 1.0 - above, above);
}
float place(Extent e, int bin, int i) {
  return e.start + float(bin) * e.bin + (float(i) + 0.5) * e.bin / float(e.samples);
}
float larger(float a, float b) { return isnan(a) || a > b ? a : b; }

void main() {
  int i = linear_item();
  if (i >= p.count) return;
  int k = i;
  int col = k % p.OW; k /= p.OW;
  int row = k % p.OH; k /= p.OH;
  int c = k % p.C, r = k / p.C;
  int image = images[r];
  if (image < 0 || image >= p.N) report(kIndexOutside, image, p.N);
  image = clamp(image, 0, p.N - 1);
  Extent across = extent_of(float(rois[4 * r]), float(rois[4 * r + 2]), p.OW, p.ratio_x);
  Extent down = extent_of(float(rois[4 * r + 1]), float(rois[4 * r + 3]), p.OH, p.ratio_y);
  int base = (image * p.C + c) * p.H * p.W;
  float sum = 0.0, largest = uintBitsToFloat(0xff800000u);
  for (int sy = 0; sy < down.samples; sy++) {
    Pair v = neighbours(place(down, row, sy), p.H);
    for (int sx = 0; sx < across.samples; sx++) {
      Pair h = neighbours(place(across, col, sx), p.W);
      vec4 parts = vec4(0.0);
      if (!v.outside && !h.outside) {
        int top = base + v.low * p.W, bottom = base + v.high * p.W;
        parts = vec4(v.weight_low * h.weight_low * float(x[top + h.low]),
                     v.weight_low * h.weight_high * float(x[top + h.high]),
                     v.weight_high * h.weight_low * float(x[bottom + h.low]),
                     v.weight_high * h.weight_high * float(x[bottom + h.high]));
      }
      sum += (parts.x + parts.y) + (parts.z + parts.w);
      largest = larger(larger(larger(larger(largest, parts.x), parts.y), parts.z), parts.w);
    }
  }
  int samples = down.samples * across.samples;
  y[i] = S(samples == 0 ? 0.0 : MAX == 1 ? largest : sum / float(samples));
}
