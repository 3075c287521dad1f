// The C API's functions of streams, while each allocation and each start of a thread fails once.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <pinnace/pinnace.h>
#include <pinnace/session.h>

#include "base/exception_boundary.h"
#include "base/status.h"
#include "cpp/fault_harness.h"
#include "cpp/text_program.h"

namespace pinnace::testing {
namespace {

/// A convolution that looks one element ahead.
constexpr const char* kSound = R"(graph "sound" {
  symbol t 1..64
  input %x : f32[1,1,t]
  const %w : f32[1,1,3] = {1,2,4}
  %y : f32[1,1,t] = conv(%x, %w) {pads=[1,1]}
  output "y" %y
})";

class StreamFaults : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  }
};

/// A stream from its beginning to its end; the first failure ends the calls. What they give is freed.
struct StreamCalls {
  const Program program;
  pnc_program* opened = nullptr;
  pnc_session* session = nullptr;
  float last[2] = {};  ///< the output of the chunk, and what finish() had left

  ~StreamCalls() { end(); }
  void end() {
    pnc_session_close(std::exchange(session, nullptr));
    pnc_program_close(std::exchange(opened, nullptr));
    last[0] = last[1] = 0;
  }
  pnc_status all() {
    const auto bytes = program.bytes();
    pnc_status status = pnc_program_from_bytes(bytes.data(), bytes.size(), PNC_VERIFY_FULL, &opened);
    const pnc_streamed_input* inputs = nullptr;
    const pnc_streamed_output* outputs = nullptr;
    int32_t input_count = 0, output_count = 0;
    if (status == PNC_OK) status = pnc_program_streamed_inputs(opened, &inputs, &input_count);
    if (status == PNC_OK) status = pnc_program_streamed_outputs(opened, &outputs, &output_count);
    const bool described = input_count == 1 && output_count == 1 && inputs[0].latency == 1 && inputs[0].tail == 1;
    pnc_free(inputs);
    pnc_free(outputs);
    if (status == PNC_OK && !described) return PNC_INVALID_ARGUMENT;
    pnc_options options = {};
    options.target = "cpu";
    options.threads = 1;
    if (status == PNC_OK) status = pnc_session_create(opened, &options, &session);
    float values[2] = {3, 5};
    const pnc_tensor chunk{values, sizeof values, PNC_F32, 3, {1, 1, 2}};
    pnc_run_options limits = {};
    limits.timeout_ns = int64_t{60} * 1000000000;
    if (status == PNC_OK) status = pnc_session_run_with(session, &chunk, 1, nullptr, 0, &limits);
    pnc_tensor y{};
    if (status == PNC_OK) status = pnc_session_output(session, 0, &y);
    if (status == PNC_OK) std::memcpy(&last[0], static_cast<const float*>(y.data) + 1, sizeof(float));
    int64_t rest = 0;
    if (status == PNC_OK) status = pnc_session_finish(session, nullptr, 0, &limits, &rest, 1);
    if (status == PNC_OK && rest != 1) return PNC_INVALID_ARGUMENT;
    if (status == PNC_OK) status = pnc_session_output(session, 0, &y);
    if (status == PNC_OK) std::memcpy(&last[1], y.data, sizeof(float));
    return status;
  }
  bool right() const { return last[0] == 2 * 3 + 4 * 5 && last[1] == 3 + 2 * 5; }
};

TEST_P(StreamFaults, CInterface) {
  const StreamAxis time{"x", 2};
  const auto model = model_of(kSound).streamed(std::span(&time, 1));
  ASSERT_TRUE(model.ok()) << model.status().message();
  StreamCalls calls{*model->build()};
  pnc_status first = PNC_OK;
  fail_everywhere({"C interface, a stream", [] {},
                   [&] {
                     first = exception_boundary([&] { return calls.all(); }, PNC_OUT_OF_MEMORY);
                     return first == PNC_OK ? Status() : Status::no_memory();
                   },
                   [&](const Status& status) -> std::string {
                     if (status.ok() && !calls.right()) return "gives other numbers";
                     if (!status.ok() && first != PNC_OUT_OF_MEMORY) return "the code is " + std::to_string(first);
                     if (!status.ok() && !*pnc_error()) return "there is no sentence";
                     calls.end();
                     if (calls.all() != PNC_OK) return "does not work any more: " + std::string(pnc_error());
                     return calls.right() ? "" : "gives other numbers afterwards";
                   },
                   [&] { calls.end(); }},
                  GetParam());
}

TEST_P(StreamFaults, AnEndThatFailsLeavesTheStreamOpen) {
  const StreamAxis time{"x", 2};
  const auto model = model_of(kSound).streamed(std::span(&time, 1));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Program program = *model->build();
  std::optional<Session> session;
  std::vector<std::byte> before;
  const auto saved = [&] {
    auto states = session->save_state();
    EXPECT_TRUE(states.ok());
    return states ? *states : std::vector<std::byte>();
  };
  const auto chunk = [&]() -> float {
    float values[2] = {3, 5};
    Tensor x;
    x.type.shape = {1, 1, 2};
    x.memory = {values, sizeof values};
    EXPECT_TRUE(session->run(std::span(&x, 1)).ok());
    return static_cast<const float*>(session->output(0).memory.host)[1];
  };
  std::vector<int64_t> rest;
  fail_everywhere({"finish a stream",
                   [&] {
                     session.emplace(*Session::create(program, {.target = "cpu", .threads = 1}));
                     chunk();
                     before = saved();
                   },
                   [&]() -> Status {
                     PINNACE_ASSIGN(rest, session->finish());
                     return {};
                   },
                   [&](const Status& status) -> std::string {
                     if (status.ok()) {
                       if (rest != std::vector<int64_t>{1}) return "another number of elements is left";
                       return chunk() == 2 * 3 + 4 * 5 ? "" : "the next stream begins with other numbers";
                     }
                     if (saved() != before) return "the states have changed";
                     if (chunk() != 5 + 2 * 3 + 4 * 5) return "the next chunk gives other numbers";
                     const auto again = session->finish();
                     return again && again->at(0) == 1 ? "" : "the stream cannot be ended any more";
                   },
                   [&] { session.reset(); }},
                  GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, StreamFaults, ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations),
                         kFaultTestName);

}  // namespace
}  // namespace pinnace::testing
