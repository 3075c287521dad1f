// The folder in which pipelines and results of self-checks are kept: PINNACE_GPU_CACHE.
#pragma once

#include <string>

namespace pinnace::gpu {

/// As the environment says; empty: nothing is kept.
std::string cache_folder();
/// Why nothing is kept though the environment names a folder; empty: no reason.
std::string cache_problem();

}  // namespace pinnace::gpu
