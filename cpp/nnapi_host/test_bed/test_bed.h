// The test bed for clients: what environment variables ask for, put around every call of the C interface. It is there
// only while a variable is set.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "nnapi_host/test_bed/arguments.h"
#include "nnapi_host/test_bed/dump.h"
#include "nnapi_host/test_bed/registry.h"
#include "nnapi_host/test_bed/settings.h"
#include "nnapi_host/test_bed/sink.h"
#include "nnapi_host/test_bed/strict.h"

namespace pinnace::nnapi_host {

class TestBed;

/// Null: no variable is set. Until the first call it points to no TestBed.
extern std::atomic<TestBed*> test_bed_or_unread;
inline bool test_bed_is_off() {
  return test_bed_or_unread.load(std::memory_order_acquire) == nullptr;
}

class TestBed {
 public:
  /// Reads the environment when first called. Null: no variable is set.
  static TestBed* get() { return test_bed_is_off() ? nullptr : read(); }

  const Settings& settings() const { return settings_; }

  /// `plain` with what was asked for before and after it.
  template <class R, class... P, class... A>
  R call(Function function, R (*plain)(P...), A... arguments) {
    const std::array<Argument, sizeof...(A)> list = {to_argument(arguments)...};
    const Answer answer = before(function, list);
    if constexpr (std::is_void_v<R>) {
      if (!answer.code) plain(arguments...);
      after(function, list, 0, answer);
    } else {
      R result = {};
      if (!answer.code || answer.made) result = plain(arguments...);
      if (answer.code) result = static_cast<R>(*answer.code);
      after(function, list, static_cast<int64_t>(result), answer);
      return result;
    }
  }

  /// A folder for caching that is not used, for the reason `problem`; empty: it is.
  void cache_folder(const ANeuralNetworksCompilation& compilation, const std::string& problem);

  /// Before a computation: waits if that is asked for; the code with which it is to fail, or 0.
  int before_computation(const ANeuralNetworksExecution& execution);
  void after_computation(const ANeuralNetworksExecution& execution, int code,
                         const std::vector<std::vector<uint32_t>>& output_dims);

 private:
  static TestBed* read();
  /// What a call gets instead of being made.
  struct Answer {
    std::optional<int> code;
    const char* why = "";
    bool made = false;    ///< the call is made all the same, and its result lost
    uint64_t number = 0;  ///< of the call, from 1
    uint64_t delay_us = 0;
    int64_t began_ns = 0;
  };
  TestBed(Settings settings, std::vector<std::string> errors);
  Answer before(Function function, Arguments arguments);
  void after(Function function, Arguments arguments, int64_t result, const Answer& answer);
  std::optional<int> refusal(Function function, Arguments arguments, Answer& answer);
  /// The code that call `count` is to give, or 0; its delay is added. `object` dies if that is asked for.
  int inject(const Fault& fault, uint64_t count, const void* object, uint64_t& delay_us);
  void trace(Function function, Arguments arguments, int64_t result, const Answer& answer) const;

  const Settings settings_;
  const std::vector<std::string> errors_;  ///< of the environment; then every call is refused
  const Sink errors_sink_;
  std::unique_ptr<Sink> trace_, strict_sink_;
  Registry registry_;
  std::unique_ptr<Strict> strict_;
  std::unique_ptr<Dump> dump_;
  std::atomic<uint64_t> counts_[kFunctionCount] = {};
  std::atomic<uint64_t> calls_ = 0, computations_ = 0;
};

}  // namespace pinnace::nnapi_host
