// Engine: what a compilation runs. It turns the model into our graph, once per set of input shapes and of values that
// are attributes with us, prepares each for the devices, and lends sessions to executions.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <pinnace/session.h>

#include "base/process.h"
#include "nnapi/to_graph.h"
#include "nnapi_host/cache.h"
#include "nnapi_host/deadline.h"

namespace pinnace::nnapi_host {

/// One input as an execution gives it.
struct InputArgument {
  std::vector<uint32_t> dims;  ///< all known
  bool omitted = false;
  std::span<const std::byte> data;
};

/// The model for one set of shapes and values. Immutable but for its pool of sessions.
class Specialisation {
 public:
  Specialisation(std::shared_ptr<const Prepared> prepared, std::vector<uint32_t> inputs,
                 std::vector<TensorType> outputs);

  const std::vector<uint32_t> inputs;     ///< for each input of the program the model's
  const std::vector<TensorType> outputs;  ///< not concrete where data decides

  const Prepared& prepared() const { return *prepared_; }
  /// A session that nobody else uses, and back.
  Result<std::unique_ptr<Session>> take();
  void give_back(std::unique_ptr<Session> session);

 private:
  std::shared_ptr<const Prepared> prepared_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

class Engine {
 public:
  /// `model` is finished. `options` say where and how it runs.
  Engine(std::shared_ptr<const nnapi::Model> model, Options options)
      : model_(std::move(model)), options_(std::move(options)) {}

  const nnapi::Model& model() const { return *model_; }
  const Options& options() const { return options_; }
  /// The specialisation for these inputs, one per input of the model; made where there is none: kCancelled if the
  /// deadline passes before it is. Thread-safe.
  Result<std::shared_ptr<Specialisation>> find(std::span<const InputArgument> inputs, const Deadline& deadline);
  /// Makes the one for the model's own shapes, if they are all known, or takes it from the cache (null: none). What
  /// fails then fails again when run; kCancelled: the deadline has passed.
  Status prepare_ahead(const Deadline& deadline, const Cache* cache);

 private:
  struct Entry {
    std::vector<std::vector<uint32_t>> dims;
    std::vector<bool> omitted;
    std::vector<std::pair<uint32_t, ConstantPtr>> values;  ///< of inputs that became constants
    std::shared_ptr<Specialisation> made;
  };
  static bool matches(const Entry& entry, std::span<const InputArgument> inputs);
  /// `have_values`: inputs have their data, so that they can become constants; `constants` are known to have to.
  Result<Entry> make(std::span<const InputArgument> inputs, std::vector<uint32_t> constants, bool have_values,
                     const Deadline& deadline);

  /// From the cache, for the model's own shapes; null if there is nothing.
  std::shared_ptr<Specialisation> cached(const Cache& cache) const;

  std::shared_ptr<const nnapi::Model> model_;
  Options options_;
  ProcessMutex mutex_;               ///< also held while a specialisation is made
  std::list<Entry> entries_;         ///< the most recent first
  std::vector<uint32_t> constants_;  ///< inputs whose values were needed so far
};

}  // namespace pinnace::nnapi_host
