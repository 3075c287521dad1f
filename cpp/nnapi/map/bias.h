// The bias of products: its scale and its length.
#pragma once

#include "nnapi/mapping.h"

namespace pinnace::nnapi {

/// Inputs 0, 1 and 2 are x, weights and bias. The bias of a quantised product stands at scale s_x * s_w, or 0 where the
/// weights have scales per channel.
Status check_bias_scale(const Call& call);
/// `bias` is [channels].
Status check_bias_shape(const Call& call, ValueId bias, int64_t channels);

}  // namespace pinnace::nnapi
