// Windows over images: pads and strides as NNAPI's operands, padding of its own where a window may not have it.
#pragma once

#include "backends/nnapi/lowering.h"
#include "ops/window.h"

namespace pinnace::nnapi_client {

/// The operands of x, [N, C, H, W] or [N, C, L], as [N, H, W, C] with H = 1 for L; and of y likewise.
struct Images {
  OperandId x, y;
  std::vector<uint32_t> y_dims;  ///< [N, H, W, C]
  bool line = false;             ///< rank 3: y is an operand of its own that finish_images() brings into shape
};
/// kSpatial where there are three spatial dimensions.
Result<Images> images_of(NodeLowering& n);
/// Gives output 0 its shape where the images had an H of their own.
Status finish_images(NodeLowering& n, const Images& images);

/// x with pads of the real number 0: PAD, from feature level 2 on. Pads of H and W, before and after.
Result<OperandId> padded(NodeLowering& n, OperandId x, int64_t top, int64_t bottom, int64_t left, int64_t right);

/// Pads in NNAPI's order: left, right, top, bottom.
void append_pads(NodeLowering& n, const Window& w, std::vector<OperandId>& inputs);
/// Strides in NNAPI's order: width, height.
void append_strides(NodeLowering& n, const Window& w, std::vector<OperandId>& inputs);

}  // namespace pinnace::nnapi_client
