// DeviceSearch: looks for a faster device on a thread of its own, while runs go on where they are.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include <pinnace/session.h>

#include "base/process.h"

// Whether "auto" decides beside the first runs. On ARM64, where the library's size counts, it decides before them.
#if defined(__aarch64__)
#define PINNACE_SEARCHES_BESIDE_RUNS 0
#else
#define PINNACE_SEARCHES_BESIDE_RUNS 1
#endif

namespace pinnace {

/// One search, for all sessions of the Prepared that holds it. It begins once and ends by itself, or when no session
/// uses it any more, or at the end of the process, whose drivers must not be torn down under it. In a forked child,
/// which has no such thread, it finds nothing and nobody waits for it. Thread-safe.
class DeviceSearch {
 public:
  /// Runs on the search's thread. What sessions are to change to; null: they stay. It looks at stopped().
  using Work = std::function<Result<std::shared_ptr<const Prepared>>()>;

  /// borrows: `work` uses objects of the application's, which may go when the last session has gone.
  DeviceSearch(Work work, bool borrows);
  ~DeviceSearch();
  DeviceSearch(const DeviceSearch&) = delete;
  DeviceSearch& operator=(const DeviceSearch&) = delete;

  /// While one lives, there is somebody to search for. The last one to go ends the search, and waits for its end if the
  /// search borrows.
  class Use {
   public:
    explicit Use(std::shared_ptr<DeviceSearch> search);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Starts the thread if nobody has; without one, nothing is searched. Fails nothing.
    void begin() noexcept;
    /// Whether found() will say no more than it does now.
    bool ended() const { return search_->ended(); }
    std::shared_ptr<const Prepared> found() const { return search_->found(); }

   private:
    std::shared_ptr<DeviceSearch> search_;
  };

  /// What to change to; null while it is not known, and if there is nothing better.
  std::shared_ptr<const Prepared> found() const;
  bool ended() const;
  /// Whether nothing will come of it: it was ended early, or could not begin.
  bool given_up() const;

  /// Waits until searches of this process have ended, at most so many seconds; they are told to. For the process's end.
  static void end_all(int seconds);

 private:
  enum class State : uint8_t { kIdle, kRunning, kEnded, kGivenUp };
  /// One whose thread has not ended.
  struct Running {
    pid_t process;
    std::shared_ptr<std::atomic<State>> state;
    std::weak_ptr<DeviceSearch> search;
  };
  static PerProcess<std::vector<Running>> running;
  State run();
  void leave();
  bool here() const;

  Work work_;
  const bool borrows_;
  const pid_t process_;
  CancelToken cancel_;
  std::atomic<int> users_{0};
  std::shared_ptr<const Prepared> found_;  ///< written before kEnded
  /// What the thread writes last, when it holds nothing else of this any more.
  const std::shared_ptr<std::atomic<State>> state_ = std::make_shared<std::atomic<State>>(State::kIdle);
};

}  // namespace pinnace
