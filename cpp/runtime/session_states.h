// SessionStates: the values of a session's states, here or where an executable keeps them, and which of both is newer.
#pragma once

#include "runtime/graph_runner.h"

namespace pinnace {

class SessionStates {
 public:
  /// Initial values. kOutOfMemory, kCorruptFile.
  Status create(const Graph& graph);

  size_t size() const { return states_.size(); }
  /// Type, bytes here and their number; the bytes are the state's value after fetch().
  const TensorView& view(size_t i) const { return views_[i]; }
  size_t bytes(size_t i) const { return states_[i].bytes.size(); }
  /// In order of Graph::states: what a runner takes.
  std::span<const TensorView> views() const { return views_; }

  /// Brings the newest value here. kDeviceLost names the state: its device is gone and the value with it, until another
  /// is set.
  Status fetch(size_t i);
  /// The same for all, which then are nowhere else, but for those that could not be had for another reason than a loss:
  /// before the runner goes away, which it may only after success.
  Status fetch_all();
  /// view(i)'s bytes are the newest from now on.
  void set_here(size_t i);

  /// Right after GraphRunner::prepare() gave the instance: values are where its executables look for them. None is left
  /// in another instance, which the runner may give up with the next one that it prepares; but for those that could not
  /// be had from holder().
  Status enter(const Instance& instance);
  /// The instance in which values may be; null: there is none. No runner may give it up.
  const Instance* holder() const { return holder_; }
  /// After a run that succeeded: its next values become the states. Changes nothing if a type would change.
  Status commit(const Instance& instance);

 private:
  struct One {
    Buffer bytes;
    Buffer next;                  ///< where the next value is another state's old one, which commit() overwrites
    KeptStates* there = nullptr;  ///< where a copy is kept; null: nowhere
    size_t position = 0;          ///< in `there`
    bool newest_here = true, newest_there = false;  ///< neither: the value is lost
  };
  const Graph* graph_ = nullptr;
  const Instance* holder_ = nullptr;
  std::vector<TensorView> views_;
  std::vector<One> states_;
};

}  // namespace pinnace
