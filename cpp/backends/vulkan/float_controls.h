// SPV_KHR_float_controls: what a kernel asks of the device's compiler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pinnace::vulkan {

/// The module with the execution mode SignedZeroInfNanPreserve for 32 bits. Without it a compiler may take it that
/// there is no NaN: NVIDIA's makes max(x, 0) of `x < 0.0 ? 0.0 : x`, and NaN became 0. The device must have
/// VK_KHR_shader_float_controls and shaderSignedZeroInfNanPreserveFloat32.
/// spirv: one of the build's modules, of SPIR-V 1.3 with one entry point.
std::vector<uint32_t> preserving_special_values(std::span<const uint32_t> spirv);

}  // namespace pinnace::vulkan
