// Dumps: each finished model as a file of its own, in the JSON form of conformance vectors ("nnapi-vectors-1"), so that
// it can be run again. A computation adds the values that it read and made.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "nnapi/model.h"
#include "nnapi_host/test_bed/sink.h"

struct ANeuralNetworksExecution;

namespace pinnace::nnapi_host {

/// Thread-safe. What cannot be written is said on `errors`, and changes nothing else.
class Dump {
 public:
  Dump(std::string folder, const Sink& errors);
  /// Inputs are zero, and outputs are not compared.
  void model(const nnapi::Model& model, const std::string& name);
  /// After the first computation of a model that succeeds its file has the values of it.
  void computation(const ANeuralNetworksExecution& execution, const std::vector<std::vector<uint32_t>>& output_dims);

 private:
  struct File {
    std::string name;
    bool has_values = false;
  };
  void write(const std::string& name, const std::string& text);

  const std::string folder_;
  const Sink& errors_;
  std::mutex mutex_;  ///< guards what follows
  std::map<const nnapi::Model*, File> files_;
};

}  // namespace pinnace::nnapi_host
