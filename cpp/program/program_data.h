// ProgramData: what a verified .pnc file holds, as the parts of pinnace see it. Program is a shared pointer to one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pinnace/program.h>

#include "graph/graph.h"

namespace pinnace {

/// The first bytes of every .pnc file. No text starts like that, and whatever changes line ends or bit 7 damages it.
inline constexpr uint8_t kProgramMagic[8] = {0x89, 'P', 'N', 'C', '\r', '\n', 0x1a, '\n'};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Bytes that a back end stored: packed weights, a compiled model. Removing one changes speed, never a result beyond
/// the stated bounds; a back end checks them as it would a file.
struct Payload {
  std::string target;  ///< "cpu:avx2"
  std::string key;     ///< the back end's own name for it; unique for the target
  std::span<const std::byte> bytes;
  std::shared_ptr<const StoredBytes> stored;  ///< the same bytes, to be checked before use; null: made just now
};

/// Immutable once it is in a Program. Constants, payloads and `bytes` point into what `owner` keeps alive: a mapped
/// file or a Buffer.
struct ProgramData {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;  ///< the whole file
  std::string name;                  ///< of the file, for messages: "net.pnc"
  Graph graph;
  Metadata metadata;              ///< sorted by key
  std::vector<Payload> payloads;  ///< sorted by target and key
  std::vector<TensorSpec> inputs, outputs;
  std::vector<StateSpec> states;
};

}  // namespace pinnace
