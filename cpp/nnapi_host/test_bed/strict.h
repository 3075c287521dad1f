// Strict mode: reports what a client does against the contract of the C interface, though this library bears with it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "nnapi_host/calls.h"
#include "nnapi_host/test_bed/arguments.h"
#include "nnapi_host/test_bed/registry.h"
#include "nnapi_host/test_bed/sink.h"

namespace pinnace::nnapi_host {

/// Thread-safe. Rules by name are in docs/nnapi.md.
class Strict {
 public:
  Strict(const Sink& sink, const Registry& registry) : sink_(sink), registry_(registry) {}

  /// Before a call. False: it names an object that is not alive and must not be made.
  bool before(Function function, Arguments arguments);
  /// After a call that was made; of functions that free not called.
  void after(Function function, Arguments arguments, int code);
  /// A compilation's folder for caching is not used.
  void refused_cache(const void* compilation, std::string_view problem);
  /// Reports what was never freed, and how many violations there were.
  void summarise();

 private:
  /// Memory of the client that a model reads until it is freed.
  struct Constant {
    int32_t operand;
    const std::byte* data;
    size_t length;
    uint64_t hash;
  };
  struct Tracked {
    ObjectKind kind;
    std::vector<const void*> needs;     ///< objects that are to live longer
    std::vector<const void*> memories;  ///< of an execution, until it has ended for good
    std::vector<Constant> constants;    ///< of a model
    const void* execution = nullptr;    ///< of an event
    const void* model = nullptr;        ///< of a compilation
    const void* compilation = nullptr;  ///< of an execution
    bool reusable = false;
    bool waited = false, exported = false;  ///< an event: Event_wait returned; its fence was given out
    int changing = 0;                       ///< calls under way that change it
    int computing = 0;                      ///< of an execution, until waited for
  };

  void report(std::string_view rule, std::string_view text);
  std::string name(const void* object) const;
  bool check_alive(Function function, Arguments arguments);
  void check_free(Function function, const void* object);
  void check_start(Function function, const ANeuralNetworksExecution& execution);
  void check_binding(Function function, Arguments arguments);
  void check_constants(Function function, const void* model);
  void check_overlaps(const ANeuralNetworksExecution& execution);
  void check_refused(Function function, Arguments arguments, int code);
  void add_constant(const void* model, Arguments arguments, const std::byte* data, size_t length);
  void record_made(Function function, Arguments arguments);
  void record_set(Function function, Arguments arguments);
  /// A computation of it has ended, or did not begin (`ran` is false).
  void ended(const void* execution, bool ran);

  const Sink& sink_;
  const Registry& registry_;
  std::mutex mutex_;  ///< guards what follows
  std::map<const void*, Tracked> tracked_;
  uint64_t violations_ = 0;
  uint64_t reported_before_call_ = 0;
};

}  // namespace pinnace::nnapi_host
