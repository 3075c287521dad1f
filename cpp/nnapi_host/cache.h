// Compilation caching: what Compilation_finish made, kept in a file of the client's cache directory, weights packed. A
// cache that is missing, damaged or another's costs time and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pinnace/session.h>

#include "base/files/private_folder.h"
#include "nnapi/to_graph.h"
#include "nnapi_host/neural_networks.h"

namespace pinnace::nnapi_host {

using CacheToken = std::array<uint8_t, ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN>;

/// One compilation's place in a cache. Nothing in it fails: what cannot be read is not there, what cannot be written is
/// not written.
class Cache {
 public:
  /// Files in `directory` are named by token; they hold what tells another model, library, processor or
  /// `target` apart. A folder that others than the user can write is not used.
  Cache(const std::string& directory, const CacheToken& token, const nnapi::Model& model, std::string_view target);

  struct Found {
    std::shared_ptr<const Prepared> prepared;
    std::unique_ptr<Session> session;  ///< the first; its making has checked all weights
    std::vector<uint32_t> inputs;      ///< for each input of the program the model's
  };
  /// Null if there is nothing of use.
  std::unique_ptr<Found> load(const Options& options) const;
  void store(const Prepared& prepared, const std::vector<uint32_t>& inputs) const;
  /// Why the folder is not used; empty: it is.
  std::string problem() const { return folder_.ok() ? std::string() : folder_.status().message(); }

 private:
  Result<Program> open_program() const;

  const nnapi::Model& model_;
  Result<PrivateFolder> folder_;
  std::string name_;
  std::string key_;  ///< model, library, processor and target, one line
};

}  // namespace pinnace::nnapi_host
