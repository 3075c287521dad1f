// The sliding window of convolutions and pools as NNAPI gives it: explicit pads or a padding scheme, width before
// height.
#pragma once

#include "nnapi/mapping.h"

namespace pinnace::nnapi {

/// One axis of a window.
struct WindowAxis {
  int64_t in = 0, filter = 1, stride = 1, dilation = 1;
  int64_t head = 0, tail = 0;  ///< pads
  int64_t extent() const { return (filter - 1) * dilation + 1; }
};

/// Pads of an axis by scheme 1 (SAME) or 2 (VALID).
Status pad_by_scheme(const Call& call, int64_t scheme, WindowAxis& axis);
/// Sizes, strides and dilations above 0; pads in [0, extent).
Status check_window(const Call& call, const WindowAxis& axis);

/// Where the window's scalars stand among an operation's inputs, and whether pads are explicit.
struct WindowInputs {
  size_t first = 0;  ///< of the pads (left, right, top, bottom), or the scheme
  bool explicit_pads = false;
  size_t strides() const { return first + (explicit_pads ? 4 : 1); }  ///< width, height
};

/// Reads pads or scheme and strides for axes whose `in` and `filter` are known; `dilations`, if not 0, is the input
/// with the dilation of the width. axes[0] is the height.
Status read_window(Call& call, const WindowInputs& where, size_t dilations, WindowAxis (&axes)[2]);

/// Attributes pads, strides and, where not 1, dilations.
Attrs window_attrs(const WindowAxis (&axes)[2]);

}  // namespace pinnace::nnapi
