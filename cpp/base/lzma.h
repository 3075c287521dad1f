// Reads LZMA's raw streams (lzma-specification.txt of the LZMA SDK), in which the library holds its larger tables:
// Python writes them, and a decoder of two hundred lines is no dependency on a device.
#pragma once

#include <cstddef>
#include <span>

namespace pinnace {

/// True if `stream` is well-formed and fills `to` exactly; if not, the contents of `to` are undefined. Nothing outside
/// of either is touched, whatever the stream says. Of LZMA's parameters lc, the bits of the byte before that choose how
/// a literal is read, is 1; lp and pb are 0. What follows the last byte, as the mark of the end does, is not read.
bool lzma_decode(std::span<const unsigned char> stream, std::span<unsigned char> to);

}  // namespace pinnace
