// Calls that end early: by token, timeout and poll, between operators and inside of them; what is left as it was; and
// one call ended at each of the places where it looks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include <pinnace/cancel.h>
#include <pinnace/model.h>
#include <pinnace/pinnace.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/threads/thread_pool.h"
#include "cpp/text_program.h"

namespace pinnace {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::model_of;
using testing::program_of;

/// Half a second is promised; other processes may share the processor with a test.
constexpr milliseconds kSoon(5000);

constexpr std::string_view kEndless = R"(graph "g" {
  input %go : bool[]
  input %x : f32[1000]
  state "count" %now : f32[] next %next = {0}
  const %one : f32[] = {1}
  %next : f32[] = add(%now, %one)
  %last : f32[1000] = loop(none, %go, %x) {carried=1, body=graph "body" {
    input %i : i64[]
    input %c : bool[]
    input %a : f32[1000]
    %b : f32[1000] = sigmoid(%a)
    output "c" %c
    output "b" %b
  }}
  output "last" %last
})";

/// Hours of work in one operator with a single element as its result.
constexpr std::string_view kOneSum = R"(graph "g" {
  input %x : f64[30000]
  %y = einsum(%x, %x, %x) {equation="i,j,k->"}
  output "y" %y
})";

/// The same in many elements, which threads share.
constexpr std::string_view kProduct = R"(graph "g" {
  input %x : f64[6000,6000]
  %y = mat_mul(%x, %x)
  output "y" %y
})";

/// By a kernel of the CPU back end.
constexpr std::string_view kConvolutions = R"(graph "g" {
  input %x : f32[1,256,256,256]
  input %w : f32[256,256,5,5]
  %y = conv(%x, %w) {pads=[2,2,2,2]}
  output "y" %y
})";

/// Inputs of ones, false for bools.
struct Inputs {
  std::vector<Buffer> memory;
  std::vector<Tensor> tensors;
  explicit Inputs(const Session& session) {
    for (const TensorSpec& spec : session.inputs()) {
      const auto bytes = static_cast<size_t>(spec.type.bytes());
      memory.push_back(std::move(*Buffer::allocate(bytes, "an input")));
      std::memset(memory.back().data(), 0, bytes);
      Tensor tensor;
      tensor.type = spec.type;
      tensor.memory.host = memory.back().data();
      tensor.memory.bytes = bytes;
      tensors.push_back(tensor);
    }
  }
  void set_bool(bool value) { *reinterpret_cast<uint8_t*>(memory[0].data()) = value; }
};

Session session_of(std::string_view text, int threads = 0) {
  auto session = Session::create(program_of(text), {.target = "cpu", .threads = threads});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.status().message());
  return std::move(*session);
}

float count_of(const Session& session) {
  auto state = session.state(0);
  EXPECT_TRUE(state.ok());
  return *static_cast<const float*>(state->memory.host);
}

TEST(Cancel, TimeoutEndsALoopWithoutEndAndLeavesStateAlone) {
  Session session = session_of(kEndless);
  Inputs inputs(session);
  inputs.set_bool(false);
  ASSERT_TRUE(session.run(inputs.tensors).ok());
  EXPECT_EQ(count_of(session), 1);
  inputs.set_bool(true);
  const auto start = Clock::now();
  const Status status = session.run(inputs.tensors, {}, {}, {.timeout = milliseconds(200)});
  const auto taken = Clock::now() - start;
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_NE(status.message().find("timed out after 0.2 s at "), std::string::npos) << status.message();
  EXPECT_GE(taken, milliseconds(200));
  EXPECT_LT(taken, kSoon);
  EXPECT_EQ(count_of(session), 1);
  inputs.set_bool(false);
  EXPECT_TRUE(session.run(inputs.tensors).ok());
  EXPECT_EQ(count_of(session), 2);
}

TEST(Cancel, TokenOfAnotherThreadEndsARunAndStaysCancelled) {
  Session session = session_of(kEndless);
  Inputs inputs(session);
  inputs.set_bool(true);
  CancelToken token;
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    token.cancel();
  });
  const Status status = session.run(inputs.tensors, {}, {}, {.cancel = &token});
  other.join();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.message().find("cancelled at "), 0u) << status.message();
  EXPECT_TRUE(token.cancelled());
  inputs.set_bool(false);  // which would end by itself
  EXPECT_EQ(session.run(inputs.tensors, {}, {}, {.cancel = &token}).code(), Code::kCancelled);
  EXPECT_EQ(session.profile(inputs.tensors, {}, {}, {.cancel = &token}).status().code(), Code::kCancelled);
  auto submitted = session.submit(inputs.tensors, {}, {}, {.cancel = &token});
  ASSERT_TRUE(submitted.ok());
  EXPECT_EQ(submitted->wait().code(), Code::kCancelled);
  EXPECT_TRUE(session.run(inputs.tensors).ok());
  EXPECT_EQ(count_of(session), 1);
}

TEST(Cancel, SubmittedRunsEndByTimeoutToo) {
  Session session = session_of(kEndless);
  Inputs inputs(session);
  inputs.set_bool(true);
  auto run = session.submit(inputs.tensors, {}, {}, {.timeout = milliseconds(1000)});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->wait_for(milliseconds(30'000)));
  EXPECT_TRUE(run->done());
  EXPECT_NE(run->wait().message().find("timed out after 1 s"), std::string::npos) << run->wait().message();
}

TEST(Cancel, WaitingForAsLongAsTheClockGoes) {
  Session session = session_of(kEndless);
  Inputs inputs(session);
  inputs.set_bool(true);
  auto run = session.submit(inputs.tensors, {}, {}, {.timeout = milliseconds(200)});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->wait_for(std::chrono::nanoseconds::max()));
  EXPECT_TRUE(run->done());
}

TEST(Cancel, WaitingForASubmittedRunEndsBeforeTheRunDoes) {
  Session session = session_of(kEndless);
  Inputs inputs(session);
  inputs.set_bool(true);
  CancelToken token;
  auto run = session.submit(inputs.tensors, {}, {}, {.cancel = &token});
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->wait_for(milliseconds(1)));  // nothing but the token ends it
  EXPECT_FALSE(run->done());
  token.cancel();
  EXPECT_TRUE(run->wait_for(milliseconds(30'000)));
  EXPECT_EQ(run->wait().code(), Code::kCancelled);
}

TEST(Cancel, NegativeTimeoutsAreRefused) {
  Session session = session_of(kEndless);
  Inputs inputs(session);
  EXPECT_EQ(session.run(inputs.tensors, {}, {}, {.timeout = milliseconds(-1)}).code(), Code::kInvalidArgument);
}

/// One bin of 3.6e9 samples.
constexpr const char* kHugeBox = R"(graph "g" {
  input %x : f32[1,1,8,8]
  const %box : f32[1,4] = {0,0,60000,60000}
  const %image : i64[1] = {0}
  %y = roi_align(%x, %box, %image) {mode="max"}
  output "y" %y
})";

struct Long {
  std::string_view name, op, graph;
  int threads;
};
class CancelInside : public ::testing::TestWithParam<Long> {};

TEST_P(CancelInside, OneOperator) {
  Session session = session_of(GetParam().graph, GetParam().threads);
  Inputs inputs(session);
  for (int i = 0; i < 2; ++i) {  // the session stays usable
    const auto start = Clock::now();
    const Status status = session.run(inputs.tensors, {}, {}, {.timeout = milliseconds(300)});
    EXPECT_EQ(status.code(), Code::kCancelled) << status.message();
    EXPECT_NE(status.message().find(GetParam().op), std::string::npos) << status.message();
    EXPECT_LT(Clock::now() - start, milliseconds(300) + kSoon);
  }
}
INSTANTIATE_TEST_SUITE_P(All, CancelInside,
                         ::testing::Values(Long{"Sum1", "einsum '", kOneSum, 1}, Long{"Sum2", "einsum '", kOneSum, 2},
                                           Long{"Product1", "mat_mul '", kProduct, 1},
                                           Long{"Product2", "mat_mul '", kProduct, 2},
                                           Long{"Convolutions1", "conv '", kConvolutions, 1},
                                           Long{"Convolutions2", "conv '", kConvolutions, 2},
                                           Long{"HugeBox", "roi_align '", kHugeBox, 1}),
                         [](const auto& info) { return std::string(info.param.name); });

/// A constant of zeros, without its name.
std::string zeros(std::string_view type, int64_t count) {
  std::string text = str_cat(type, " = {0");
  for (int64_t i = 1; i < count; ++i) text += ",0";
  return text + "}";
}
/// A row of an image that makes one product of many rows.
const std::string kLineOfPixels = str_cat(R"(graph "g" {
  input %x : f32[1,8,1,200000]
  const %w : )",
                                          zeros("f32[64,8,1,9]", 4608),
                                          R"(
  %y = conv(%x, %w) {pads=[0,4,0,4]}
  output "y" %y
})");
const std::string kLineOfBytes = str_cat(R"(graph "g" {
  input %x : u8[1,8,1,200000]{scale 0.1, zero 3}
  const %w : )",
                                         zeros("i8[64,8,1,9]{scale 0.1, zero 0}", 4608),
                                         R"(
  %y : u8[1,64,1,200000]{scale 0.1, zero 3} = conv(%x, %w) {pads=[0,4,0,4]}
  output "y" %y
})");
/// Eight steps of some hundred sequences.
const std::string kManySequences = str_cat(R"(graph "g" {
  input %x : f32[8,128,8]
  const %w : )",
                                           zeros("f32[1,512,8]", 4096),
                                           R"(
  const %r : )",
                                           zeros("f32[1,512,512]", 262144),
                                           R"(
  %y = rnn(%x, %w, %r)
  output "y" %y
})");

/// Kernels whose work is one task of a single thread.
struct OneTask {
  const char *name, *graph;
  const char* kernel;  ///< how its name begins
};
class LooksInside : public ::testing::TestWithParam<OneTask> {};

TEST_P(LooksInside, OneTask) {
  Session session = session_of(GetParam().graph, 1);
  Inputs inputs(session);
  const auto events = session.profile(inputs.tensors);
  ASSERT_TRUE(events.ok()) << events.status().message();
  std::string ran;
  for (const ProfileEvent& e : *events) ran += e.kernel + " ";
  EXPECT_NE((" " + ran).find(str_cat(" ", GetParam().kernel)), std::string::npos) << ran;
  const auto looks = [&](int64_t stop_at) {
    struct Count {
      int64_t looks = 0, stop_at;
    } count{.stop_at = stop_at};
    CancelScope scope(
        [](void* context) {
          auto* c = static_cast<Count*>(context);
          return ++c->looks == c->stop_at;
        },
        &count);
    CancelView::poll_at_every_look(scope);
    EXPECT_EQ(session.run(inputs.tensors).code(), stop_at ? Code::kCancelled : Code::kOk);
    return count.looks;
  };
  const int64_t all = looks(0);
  EXPECT_GT(all, 40) << "a step of more than some ten microseconds between two looks";
  EXPECT_LT(all, 4000) << "a look for every few elements";
  EXPECT_EQ(looks(all / 2), all / 2) << "nothing looks again once a look has ended the run";
  EXPECT_EQ(looks(0), all);
}
INSTANTIATE_TEST_SUITE_P(All, LooksInside,
                         ::testing::Values(OneTask{"Depthwise",
                                                   R"(graph "g" {
  input %x : f32[1,64,128,128]
  input %w : f32[64,1,3,3]
  %y = conv(%x, %w) {pads=[1,1,1,1], group=64}
  output "y" %y
})",
                                                   "conv_depthwise_f32_"},
                                           OneTask{"MatrixProduct",
                                                   R"(graph "g" {
  input %x : f32[2,160,1024]
  input %w : f32[2,1024,4096]
  %y = mat_mul(%x, %w)
  output "y" %y
})",
                                                   "mat_mul_f32_"},
                                           OneTask{"LineOfPixels", kLineOfPixels.c_str(), "conv_nhwc_f32_"},
                                           OneTask{"LineOfBytes", kLineOfBytes.c_str(), "conv_nhwc_i8_"},
                                           OneTask{"ScatteredTuples",
                                                   R"(graph "g" {
  input %x : f32[16,64]
  input %i : i64[100000,1]
  input %u : f32[100000,64]
  %y = scatter_nd(%x, %i, %u) {reduction="add"}
  output "y" %y
})",
                                                   "scatter_nd_any_"},
                                           OneTask{"ScatteredLine",
                                                   R"(graph "g" {
  input %x : f32[1000]
  input %i : i64[2000000]
  input %u : f32[2000000]
  %y = scatter_elements(%x, %i, %u) {axis=0, reduction="add"}
  output "y" %y
})",
                                                   "scatter_elements_any_"},
                                           OneTask{"WidePad",
                                                   R"(graph "g" {
  input %x : f32[1,10]
  const %pads : i64[4] = {0,1000000,0,1000000}
  %y = pad(%x, %pads) {mode="edge"}
  output "y" %y
})",
                                                   "pad_any_"},
                                           OneTask{"SoftmaxOfColumns",
                                                   R"(graph "g" {
  input %x : f32[100000,64]
  %y = softmax(%x) {axis=0}
  output "y" %y
})",
                                                   "softmax_columns_f32_"},
                                           OneTask{"ManySequences", kManySequences.c_str(), "recurrent_f32_"},
                                           OneTask{"MaxPool",
                                                   R"(graph "g" {
  input %x : u8[1,64,128,128]
  %y = max_pool(%x) {kernel_shape=[3,3], pads=[1,1,1,1]}
  output "y" %y
})",
                                                   "max_pool_i8_"},
                                           OneTask{"AveragePool",
                                                   R"(graph "g" {
  input %x : u8[1,64,128,128]{scale 0.1, zero 3}
  %y : u8[1,64,128,128]{scale 0.1, zero 3} = average_pool(%x) {kernel_shape=[3,3], pads=[1,1,1,1]}
  output "y" %y
})",
                                                   "average_pool_i8_"},
                                           OneTask{"Resize",
                                                   R"(graph "g" {
  input %x : f32[1,64,64,64]
  const %sizes : i64[4] = {1,64,128,128}
  %y = resize(%x, none, none, %sizes) {mode="linear"}
  output "y" %y
})",
                                                   "resize_f32_"},
                                           OneTask{"ResizeOfOnePlane",
                                                   R"(graph "g" {
  input %x : f32[1,1,512,512]
  const %sizes : i64[4] = {1,1,1024,1024}
  %y = resize(%x, none, none, %sizes) {mode="linear"}
  output "y" %y
})",
                                                   "resize_f32_"},
                                           OneTask{"ResizeOfBytes",
                                                   R"(graph "g" {
  input %x : u8[1,64,64,64]{scale 0.1, zero 3}
  const %sizes : i64[4] = {1,64,128,128}
  %y : u8[1,64,128,128]{scale 0.1, zero 3} = resize(%x, none, none, %sizes) {mode="linear"}
  output "y" %y
})",
                                                   "resize_i8_"},
                                           OneTask{"NearestOfBytes",
                                                   R"(graph "g" {
  input %x : u8[1,64,64,64]
  const %sizes : i64[4] = {1,64,128,128}
  %y = resize(%x, none, none, %sizes) {mode="nearest"}
  output "y" %y
})",
                                                   "resize_i8_"},
                                           OneTask{"Softmax",
                                                   R"(graph "g" {
  input %x : i8[8192,128]{scale 0.1, zero 0}
  %y : i8[8192,128]{scale 0.00390625, zero -128} = softmax(%x)
  output "y" %y
})",
                                                   "softmax_i8_"},
                                           OneTask{"Largest",
                                                   R"(graph "g" {
  input %x : f32[1000000]
  const %k : i64[1] = {500000}
  %y, %i = top_k(%x, %k)
  output "y" %y
  output "i" %i
})",
                                                   "top_k_f32_"},
                                           OneTask{"Unique",
                                                   R"(graph "g" {
  input %x : i64[1000000]
  %y = unique(%x)
  output "y" %y
})",
                                                   "reference"},
                                           OneTask{"Eigenvectors",
                                                   R"(graph "g" {
  input %x : f32[100,100]
  %w, %v = eigh(%x)
  output "w" %w
  output "v" %v
})",
                                                   "reference"},
                                           OneTask{"SingularVectors",
                                                   R"(graph "g" {
  input %x : f32[100,90]
  %s, %u, %vt = svd(%x) {full_matrices=1}
  output "s" %s
  output "u" %u
  output "vt" %vt
})",
                                                   "reference"},
                                           OneTask{"Qr",
                                                   R"(graph "g" {
  input %x : f32[100,100]
  %q, %r = qr(%x)
  output "q" %q
  output "r" %r
})",
                                                   "reference"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Cancel, ScopesEndOtherCalls) {
  const Model model = model_of(kEndless);
  const Program program = program_of(kEndless);
  CancelToken token;
  token.cancel();
  const CancelScope scope({.cancel = &token});
  EXPECT_EQ(Model::parse(kEndless).status().code(), Code::kCancelled);
  EXPECT_EQ(model.build().status().code(), Code::kCancelled);
  EXPECT_EQ(Session::create(program).status().code(), Code::kCancelled);
  {
    const CancelScope inner({.timeout = std::chrono::hours(1)});
    EXPECT_EQ(model.build().status().code(), Code::kCancelled) << "the outer scope counts too";
  }
  bool elsewhere = false;
  std::thread([&] { elsewhere = model.build().ok(); }).join();
  EXPECT_TRUE(elsewhere) << "scopes are for the calls of one thread";
}

TEST(Cancel, WhatIsSavedIsWholeOrNotThere) {
  const Program program = program_of(kEndless);
  const auto folder = std::filesystem::temp_directory_path() / ("pinnace_cancel_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "net.pnc").string();
  CancelToken token;
  token.cancel();
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  {
    const CancelScope scope({.cancel = &token});
    EXPECT_EQ(program.save(path).code(), Code::kCancelled);
    EXPECT_EQ(files(), 0);
  }
  std::ofstream(path) << "before";
  {
    const CancelScope scope({.cancel = &token});
    EXPECT_EQ(program.save(path).code(), Code::kCancelled);
  }
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "before");
  EXPECT_EQ(files(), 1);
  EXPECT_TRUE(program.save(path).ok());
  EXPECT_TRUE(Program::open(path).ok());
  {
    const CancelScope scope({.cancel = &token});
    EXPECT_EQ(Program::open(path).status().code(), Code::kCancelled);
  }
  std::filesystem::remove_all(folder);
}

TEST(Cancel, PollsAreAskedOnTheirThreadAlone) {
  struct Poll {
    std::thread::id thread = std::this_thread::get_id();
    int calls = 0, wrong = 0;
  } poll;
  const CancelScope scope(
      [](void* context) {
        auto* own = static_cast<Poll*>(context);
        own->wrong += std::this_thread::get_id() != own->thread;
        return ++own->calls == 3;
      },
      &poll);
  Session session = session_of(kProduct, 2);
  Inputs inputs(session);
  const auto start = Clock::now();
  EXPECT_EQ(session.run(inputs.tensors).code(), Code::kCancelled);
  EXPECT_GE(Clock::now() - start, milliseconds(100));
  EXPECT_EQ(poll.calls, 3);
  EXPECT_EQ(poll.wrong, 0);
}

TEST(Cancel, LoopsLeaveNothingOutUnlessTheyMay) {
  CancelToken token;
  token.cancel();
  const CancelScope scope({.cancel = &token});
  for (int threads : {1, 2}) {
    std::atomic<int> done = 0;
    ThreadPool::shared().run(100, threads, [&](int64_t) { ++done; });
    EXPECT_EQ(done, 100) << "what is kept must be whole";
    const LoopsMayStop loops;
    done = 0;
    ThreadPool::shared().run(100, threads, [&](int64_t) { ++done; });
    EXPECT_LE(done, 1);
    const LoopsMayStop none(false);
    ThreadPool::shared().run(100, threads, [&](int64_t) { ++done; });
    EXPECT_GE(done, 100);
  }
}

// Weights that are packed, a constant that is folded, a loop, a state, shapes that are planned when they come.
std::string everything() {
  std::string weights, zeros;
  for (int i = 0; i < 256; ++i) weights += (i ? "," : "") + std::to_string((i % 11 - 5) / 8.0);
  for (int i = 0; i < 16; ++i) zeros += i ? ",0" : "0";
  return R"(graph "g" {
  symbol n 1..64
  input %x : f32[n,16]
  state "sum" %now : f32[16] next %next = {)" +
         zeros + R"(}
  const %w : f32[16,16] = {)" +
         weights + R"(}
  const %half : f32[] = {0.5}
  const %axes : i64[1] = {0}
  const %trips : i64[] = {3}
  %scaled : f32[16,16] = mul(%w, %half)
  %p : f32[n,16] = mat_mul(%x, %scaled)
  %r : f32[n,16] = relu(%p)
  %s : f32[16] = reduce_sum(%r, %axes) {keepdims=0}
  %next : f32[16] = add(%now, %s)
  %last : f32[16] = loop(%trips, none, %next) {carried=1, body=graph "body" {
    input %i : i64[]
    input %c : bool[]
    input %a : f32[16]
    %b : f32[16] = sigmoid(%a)
    output "c" %c
    output "b" %b
  }}
  output "last" %last
})";
}

/// Parses, builds, makes a session and runs it at two sizes; the outputs of both, by what is there already.
struct Work {
  std::optional<Model> model;
  std::optional<Program> program;
  std::optional<Session> session;
  std::vector<float> results;
  int runs = 0;

  Status go() {
    if (!model) {
      auto made = Model::parse(everything());
      if (!made) return made.status();
      model = std::move(*made);
    }
    if (!program) {
      auto made = model->build({.targets = {"cpu:avx2"}});
      if (!made) return made.status();
      program = std::move(*made);
    }
    if (!session) {
      auto made = Session::create(*program, {.target = "cpu", .threads = 2});
      if (!made) return made.status();
      session = std::move(*made);
    }
    for (; runs < 2; ++runs) {
      const int64_t rows = runs == 0 ? 40 : 3;
      std::vector<float> x(static_cast<size_t>(rows) * 16);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 100;
      Tensor input;
      input.type = {DType::kF32, {Dim(rows), Dim(16)}, nullptr};
      input.memory.host = x.data();
      input.memory.bytes = x.size() * sizeof(float);
      if (Status status = session->run({&input, 1}); !status.ok()) return status;
      const Tensor y = session->output(0);
      const auto* values = static_cast<const float*>(y.memory.host);
      results.insert(results.end(), values, values + 16);
    }
    return {};
  }
};

TEST(Cancel, AtEachOfThePlacesWhereACallLooks) {
  Work calm;
  ASSERT_TRUE(calm.go().ok()) << calm.go().message();
  int64_t most = 0;
  for (int64_t stop = 1;; ++stop) {
    Work work;
    struct Countdown {
      int64_t left;
    } countdown{stop};
    Status status;
    {
      CancelScope scope([](void* context) { return --static_cast<Countdown*>(context)->left == 0; }, &countdown);
      CancelView::poll_at_every_look(scope);
      status = work.go();
    }
    if (countdown.left > 0) {
      EXPECT_TRUE(status.ok()) << status.message();
      break;
    }
    most = stop;
    ASSERT_EQ(status.code(), Code::kCancelled) << "look " << stop << ": " << status.message();
    ASSERT_TRUE(work.go().ok()) << "look " << stop;
    ASSERT_EQ(work.results, calm.results) << "look " << stop;
  }
  EXPECT_GT(most, 50);
  RecordProperty("looks", std::to_string(most));
}

TEST(Cancel, InC) {
  const Program program = program_of(kEndless);
  const auto path = std::filesystem::temp_directory_path() / ("pinnace_cancel_" + std::to_string(getpid()) + ".pnc");
  ASSERT_TRUE(program.save(path.string()).ok());
  pnc_program* opened = nullptr;
  pnc_session* session = nullptr;
  pnc_cancel_token* token = nullptr;
  ASSERT_EQ(pnc_program_open(path.string().c_str(), &opened), PNC_OK);
  std::filesystem::remove(path);
  ASSERT_EQ(pnc_session_create(opened, nullptr, &session), PNC_OK);
  EXPECT_EQ(pnc_cancel_token_create(nullptr), PNC_INVALID_ARGUMENT);
  ASSERT_EQ(pnc_cancel_token_create(&token), PNC_OK);
  uint8_t go = 1;
  std::vector<float> x(1000);
  const pnc_tensor inputs[] = {{&go, 1, PNC_BOOL, 0, {}}, {x.data(), 4000, PNC_F32, 1, {1000}}};
  pnc_run_options options = {token, 100'000'000};
  EXPECT_EQ(pnc_session_run_with(session, inputs, 2, nullptr, 0, &options), PNC_CANCELLED);
  EXPECT_NE(std::strstr(pnc_error(), "timed out after 0.1 s"), nullptr) << pnc_error();
  EXPECT_EQ(pnc_cancel_token_cancelled(token), 0);
  options.timeout_ns = 0;
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(20));
    pnc_cancel_token_cancel(token);
  });
  EXPECT_EQ(pnc_session_run_with(session, inputs, 2, nullptr, 0, &options), PNC_CANCELLED);
  other.join();
  EXPECT_EQ(pnc_cancel_token_cancelled(token), 1);
  go = 0;
  EXPECT_EQ(pnc_session_run_with(session, inputs, 2, nullptr, 0, nullptr), PNC_OK);
  options = {nullptr, -1};
  EXPECT_EQ(pnc_session_run_with(session, inputs, 2, nullptr, 0, &options), PNC_INVALID_ARGUMENT);
  pnc_cancel_token_cancel(nullptr);
  EXPECT_EQ(pnc_cancel_token_cancelled(nullptr), 0);
  pnc_cancel_token_close(token);
  pnc_cancel_token_close(nullptr);
  pnc_session_close(session);
  pnc_program_close(opened);
}

}  // namespace
}  // namespace pinnace
