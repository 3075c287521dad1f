// Reads LZ4's block format (github.com/lz4/lz4, doc/lz4_Block_format.md), in which the library holds its larger tables:
// a third of the size for thirty lines, and no dependency on a device.
#pragma once

#include <cstddef>
#include <span>

namespace pinnace {

/// True if `block` is well-formed and fills `to` exactly; if not, the contents of `to` are undefined. Nothing outside
/// of either is touched, whatever the block says.
bool lz4_decode(std::span<const unsigned char> block, std::span<unsigned char> to);

}  // namespace pinnace
