// Locks over long work: who waits ends with its call, nobody waits for itself, nor for what stayed behind at a fork;
// and the stores of packed weights that use them.
#include "base/threads/work_mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "backends/packed_constants.h"
#include "base/cancel.h"
#include "cpp/forks.h"

namespace pinnace {
namespace {

using std::chrono::milliseconds;
using testing::Holder;
using testing::in_child;

TEST(WorkMutex, WaitsForAnotherThread) {
  WorkMutex mutex;
  int steps = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const WorkLock lock(mutex, "counting");
        ASSERT_TRUE(lock.status().ok());
        ++steps;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(steps, 200);
}

TEST(WorkMutex, AWaitEndsWithItsCall) {
  WorkMutex mutex;
  const Holder holder([&](Holder& h) {
    const WorkLock lock(mutex, "the test");
    h.hold();
  });
  {
    const CancelScope scope({.timeout = milliseconds(30)});
    const WorkLock lock(mutex, "the test");
    EXPECT_EQ(lock.status().code(), Code::kCancelled);
    EXPECT_EQ(lock.status().message(), "timed out after 0.03 s at the wait for the test on another thread");
  }
  {
    CancelToken token;
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(20));
      token.cancel();
    });
    const CancelScope scope({.cancel = &token});
    const WorkLockAnew lock(mutex, "the test");
    EXPECT_EQ(lock.status().code(), Code::kCancelled);
    other.join();
  }
  {
    const CancelScope scope([](void*) { return true; }, nullptr);  // as a host's signal handler that raises
    EXPECT_EQ(mutex.lock("the test").code(), Code::kCancelled);
  }
  EXPECT_FALSE(mutex.try_lock());
}

TEST(WorkMutex, NobodyWaitsForItself) {
  WorkMutex mutex;
  {
    const WorkLock lock(mutex, "the test");
    ASSERT_TRUE(lock.status().ok());
    EXPECT_FALSE(mutex.try_lock());
    for (const Status& status : {mutex.lock("the test"), mutex.lock_anew("the test")}) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_EQ(status.message().find("this thread is at the test already"), 0u) << status.message();
    }
  }
  ASSERT_TRUE(mutex.lock("the test").ok());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(WorkMutex, AChildIsToldWhatWasLeftBehind) {
  WorkMutex held, free;
  const Holder holder([&](Holder& h) {
    const WorkLock lock(held, "the test");
    h.hold();
  });
  EXPECT_EQ(in_child([&] {
              if (!held.left_behind()) return 1;
              const Status status = held.lock("the test");
              if (status.code() != Code::kInvalidArgument) return 2;
              if (status.message().find("forked") == std::string::npos) return 3;
              if (!held.lock_anew("the test").ok() || held.left_behind()) return 4;
              held.unlock();
              return free.lock("the test").ok() && held.lock("the test").ok() ? 0 : 5;
            }),
            0);
  EXPECT_FALSE(held.left_behind());
}

/// A store whose weights another thread packs until it is let go.
struct Packing {
  PackedConstants packed;
  const Holder holder{[this](Holder& h) {
    const auto any = [](const std::byte*) { return true; };
    const auto make = [&]() -> Result<Buffer> {
      packed.add_made_bytes(5);
      h.hold();
      return Buffer::allocate(64, "a weight");
    };
    EXPECT_TRUE(packed.get("cpu", "slow", 64, any, make).ok());
  }};
  Result<const std::byte*> get() {
    const auto any = [](const std::byte*) { return true; };
    return packed.get("cpu", "slow", 64, any, [] { return Buffer::allocate(64, "a weight"); });
  }
};

TEST(PackedConstants, ItsSizeIsReadWhileAnotherThreadPacks) {
  Packing packing;
  EXPECT_EQ(packing.packed.made_bytes(), 5u);
}

TEST(PackedConstants, WaitingForAnotherThreadsPackingEndsWithTheCall) {
  Packing packing;
  const CancelScope scope({.timeout = milliseconds(20)});
  EXPECT_EQ(packing.get().status().code(), Code::kCancelled);
  EXPECT_EQ(packing.packed.shared<int>("one").status().code(), Code::kCancelled);
  EXPECT_EQ(packing.packed.stored("cpu", "slow", 64).status().code(), Code::kCancelled);
  EXPECT_EQ(packing.packed.storable().status().code(), Code::kCancelled);
}

TEST(PackedConstants, AChildIsRefusedWhatItsParentWasPacking) {
  Packing packing;
  EXPECT_EQ(in_child([&] {
              if (packing.packed.made_bytes() != 5 || !packing.packed.left_behind()) return 1;
              if (packing.get().status().code() != Code::kInvalidArgument) return 2;
              return packing.packed.storable().status().code() == Code::kInvalidArgument ? 0 : 3;
            }),
            0);
}

TEST(PackedConstants, PackingDoesNotWaitForItself) {
  PackedConstants packed;
  Status inner;
  const auto any = [](const std::byte*) { return true; };
  const auto make = [&]() -> Result<Buffer> {
    inner = packed.storable().status();
    return Buffer::allocate(64, "a weight");
  };
  ASSERT_TRUE(packed.get("cpu", "key", 64, any, make).ok());
  EXPECT_EQ(inner.code(), Code::kInvalidArgument);
  const auto all = packed.storable();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 1u);
}

}  // namespace
}  // namespace pinnace
