// The compute kernels as the build made them from the families' files: SPIR-V, Metal's text, and what the latter does
// not carry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pinnace::gpu {

/// One variant of a kernel, as built.
///
/// In SPIR-V the entry point is "main", buffers are set 0, bindings 0 to `bindings` - 1; in Metal's text the entry
/// point is `name`, binding n is buffer(n), push constants are buffer(30), specialisation constant n is function
/// constant n.
struct KernelCode {
  std::string_view name;            ///< "conv_f16": the line of kernels.inc and the storage type; unique
  std::span<const uint32_t> spirv;  ///< Vulkan 1.1; empty of a kernel that is written by hand for Metal
  std::string_view msl;             ///< Metal 2.3, macOS and iOS; empty on systems that have no Metal
  uint32_t bindings;                ///< storage buffers, at most 16
  uint32_t written;                 ///< bit n: the kernel writes binding n; it reads what it does not write
  uint32_t push_bytes;              ///< multiple of 4, at most 128
  uint32_t spec_constants;          ///< ids 0 to this - 1, each an int32
  std::array<uint32_t, 3> local;    ///< invocations of a workgroup; at most 256 in all
  uint32_t shared_bytes;            ///< of a workgroup, at most 16 KiB
  bool f16_storage;                 ///< needs DeviceCaps::f16_storage
  bool linear = false;  ///< groups are counted along a line (linear_group() in prelude.glsl): any x and y will do
  bool simdgroup_matrices = false;  ///< needs DeviceCaps::simdgroup_matrices
};

/// All kernels, ascending by name. The first call unpacks their code, which the library holds compressed, into memory
/// that is never given back. Thread-safe.
std::span<const KernelCode> all_kernels();
/// For the generated table: fills `words` from what cmake/shaders.py packed, LZMA of `stream_bytes` bytes.
void unpack_words(std::span<const unsigned char> packed, size_t stream_bytes, std::span<uint32_t> words);
/// Null if there is none of that name.
const KernelCode* find_kernel(std::string_view name);
/// Of names, code and manifest of all kernels: what stored pipelines depend on.
uint64_t kernels_hash();

}  // namespace pinnace::gpu
