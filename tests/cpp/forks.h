// What tests of forks and of locks need: a child with a limit, and a thread that holds something.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace pinnace::testing {

/// The status that a forked child ends with, or 100 if it takes longer than 10 s; `body` gives it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body());
  }
  for (int i = 0; i < 10000; ++i) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return 100;
}

/// Another thread that holds what it was given until it is told to let go.
class Holder {
 public:
  explicit Holder(std::function<void(Holder&)> body) : thread_([this, body = std::move(body)] { body(*this); }) {
    while (!holds_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Holder() {
    release_ = true;
    thread_.join();
  }
  void hold() {
    holds_ = true;
    while (!release_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<bool> holds_{false}, release_{false};
  std::thread thread_;
};

}  // namespace pinnace::testing
