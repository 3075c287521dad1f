// The back end that stands above a driver: one object per driver.
#pragma once

#include "backends/backend.h"
#include "backends/gpu/device.h"

namespace pinnace::gpu {

/// Never destroyed.
const Backend* make_backend(const Driver& driver);

}  // namespace pinnace::gpu
