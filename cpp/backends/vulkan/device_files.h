// Device files: whether this machine has a GPU, told without opening a library.
#pragma once

#include <string>
#include <string_view>

namespace pinnace::vulkan {

/// Where kernels put the devices of GPUs: render nodes of DRM, Adreno, Mali, PowerVR, NVIDIA, Tegra, and WSL's GPU.
inline constexpr std::string_view kDeviceFiles =
    "/dev/dri/renderD*:/dev/kgsl-3d0:/dev/mali*:/dev/pvr_sync:/dev/nvidia*:/dev/nvhost-gpu:/dev/dxg";

/// Paths of the list that are there, in its order, separated by spaces. The list is separated by colons; a `*` at the
/// end of a path stands for digits. What cannot be looked at may be there, and counts as if it were.
std::string files_there(std::string_view list);

/// files_there() of the list that PINNACE_GPU_DEVICE_FILES gives, or else of kDeviceFiles.
std::string device_files();

/// These files, and a hash of what else tells one device and driver from another without asking them: numbers of the
/// devices, what the kernel says of each (driver, PCI identity), and when Vulkan's lists of drivers changed last. Empty
/// without any file.
std::string device_signs();

}  // namespace pinnace::vulkan
