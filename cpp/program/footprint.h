// How much memory a graph takes once it is read, counted on the file before anything is allocated: a list of four-byte
// references to one large table would otherwise cost a thousand times what is in the file.
#pragma once

#include <cstdint>

#include "program/format_generated.h"

namespace pinnace {

/// What the graph may take beside the file's own bytes (rule F-18). Two times the file and 16 MiB is the promise for a
/// whole Program: once the file itself, where it is copied, once this and the texts of the manifest, and 2 MiB for what
/// does not grow with the file.
constexpr uint64_t footprint_allowance(uint64_t file_bytes, uint64_t manifest_bytes) {
  return file_bytes - manifest_bytes + (uint64_t(14) << 20);
}

/// An upper bound of the heap bytes that decoding, verify() and the schema checks hold at once. Counting stops as soon
/// as the sum exceeds `limit`, so that it takes time in proportion to `limit` at most. References out of range count
/// nothing. `model` has passed the FlatBuffers verifier.
uint64_t graph_footprint(const format::Model& model, uint64_t limit);

}  // namespace pinnace
