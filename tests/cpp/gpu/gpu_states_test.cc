// States that stay on a GPU: what runs do not see of them on the host, streams against the CPU whose states are looked
// at, set, saved and forked meanwhile, failed runs, and a forked child.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/backend.h"
#include "backends/packed_constants.h"
#include "base/half.h"
#include "cases/run_case.h"
#include "cpp/forks.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/random_cases.h"
#include "cpp/text_program.h"
#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace::testing {
namespace {

/// States of all types that stay, one that does not (f16), and one whose next value is an output too.
constexpr char kStates[] = R"(graph "states" {
  symbol t 1..8
  input %x : f32[t,4]
  const %one32 : i32[1] = {1}
  const %one64 : i64[1] = {1}
  const %half : f32[1] = {0.5}
  const %axis : i64[1] = {0}
  state "sum" %s : f32[4] next %sn = {1,2,3,4}
  state "turns" %k : i32[1] next %kn = {-7}
  state "seen" %n : i64[1] next %nn = {500}
  state "odd" %b : bool[1] next %bn = {1}
  state "rounded" %h : f16[4] next %hn = {0,0.25,0.5,1}
  state "shown" %o : f32[4] next %on = {0,0,0,0}
  %added : f32[4] = reduce_sum(%x, %axis) {keepdims=0}
  %less : f32[4] = mul(%s, %half)
  %sn : f32[4] = add(%less, %added)
  %kn : i32[1] = add(%k, %one32)
  %nn : i64[1] = add(%n, %one64)
  %bn : bool[1] = not(%b)
  %hf : f32[4] = cast(%h) {to="f32"}
  %hs : f32[4] = add(%hf, %sn)
  %hh : f32[4] = tanh(%hs)
  %hn : f16[4] = cast(%hh) {to="f16"}
  %on : f32[4] = add(%o, %hs)
  %kf : f32[1] = cast(%kn) {to="f32"}
  %nf : f32[1] = cast(%nn) {to="f32"}
  %bf : f32[1] = cast(%b) {to="f32"}
  %p : f32[4] = add(%sn, %kf)
  %q : f32[4] = add(%p, %bf)
  %y : f32[4] = add(%q, %nf)
  output "y" %y
  output "shown" %on
})";

/// States of an image and of a cell, in parts as small as a buffer may be.
std::string large_states() {
  Random random(3);
  const auto numbers = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += str_cat(i ? "," : "", random.uniform(-0.3f, 0.3f));
    return text;
  };
  return str_cat(R"(graph "image" {
  symbol t 1..4
  input %x : f32[t,4]
  const %w : f32[4,4,3,3] = {)",
                 numbers(4 * 4 * 9), R"(}
  const %wg : f32[1,30,4] = {)",
                 numbers(120), R"(}
  const %rg : f32[1,30,10] = {)",
                 numbers(300), R"(}
  const %bg : f32[1,60] = {)",
                 numbers(60), R"(}
  const %to : i64[3] = {0,1,4}
  state "image" %s : f32[1,4,24,24] next %sn = {)",
                 numbers(4 * 24 * 24), R"(}
  state "cell" %h : f32[1,1,10] next %hn = {)",
                 numbers(10), R"(}
  const %rows : i64[1] = {0}
  const %shape : i64[3] = {-1,1,4}
  const %wide : i64[4] = {1,4,1,1}
  %xs : f32[t,1,4] = reshape(%x, %shape)
  %ys : f32[t,1,1,10], %hn : f32[1,1,10] = gru(%xs, %wg, %rg, %bg, none, %h) {linear_before_reset=1}
  %m : f32[4] = reduce_mean(%x, %rows) {keepdims=0}
  %mi : f32[1,4,1,1] = reshape(%m, %wide)
  %c : f32[1,4,24,24] = conv(%s, %w) {pads=[1,1,1,1]}
  %ca : f32[1,4,24,24] = add(%c, %mi)
  %sn : f32[1,4,24,24] = tanh(%ca)
  %y : f32[1,4,24,24] = relu(%ca)
  output "y" %y
})");
}

struct Form {
  const char* options;
  const char* precision;
  double bound;
};
constexpr Form kForms[] = {
    {"no_self_check", "fp32", 1e-4},
    {"no_self_check,staging", "fp32", 1e-4},
    {"no_self_check,staging,max_buffer_bytes=16384", "fp32", 1e-4},
    {"no_self_check,staging", "fp16", 2e-2},
};

std::vector<float> input_of(int64_t t, uint64_t seed) {
  Random random(seed);
  std::vector<float> x(static_cast<size_t>(t) * 4);
  for (float& v : x) v = random.uniform(-1.0f, 1.0f);
  return x;
}

Status step(Session& session, int64_t t, uint64_t seed) {
  std::vector<float> x = input_of(t, seed);
  Tensor in;
  in.type = {DType::kF32, {Dim(t), Dim(4)}, nullptr};
  in.memory.host = x.data();
  in.memory.bytes = x.size() * sizeof(float);
  return session.run({&in, 1});
}

void expect_same(const Tensor& got, const Tensor& want, double bound) {
  ASSERT_EQ(got.memory.bytes, want.memory.bytes);
  if (got.type.dtype == DType::kF32) {
    const auto *a = static_cast<const float*>(got.memory.host), *b = static_cast<const float*>(want.memory.host);
    for (int64_t i = 0; i < got.type.elements(); ++i) {
      ASSERT_NEAR(a[i], b[i], bound * std::max(1.0f, std::fabs(b[i]))) << i;
    }
  } else if (got.type.dtype == DType::kF16) {
    const auto *a = static_cast<const Half*>(got.memory.host), *b = static_cast<const Half*>(want.memory.host);
    for (int64_t i = 0; i < got.type.elements(); ++i) {
      ASSERT_NEAR(static_cast<float>(a[i]), static_cast<float>(b[i]), bound + 1e-3) << i;
    }
  } else {
    ASSERT_EQ(std::memcmp(got.memory.host, want.memory.host, got.memory.bytes), 0);
  }
}

void expect_states(Session& got, Session& want, double bound) {
  for (int i = 0; got.state(i).ok(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(want.state(i).ok());
    expect_same(*got.state(i), *want.state(i), bound);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

class GpuStates : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::string name() const { return GetParam()->name; }
  Result<Session> session(const Program& program, const char* precision = "fp32") const {
    return Session::create(program, {.target = name(), .threads = 1, .precision = precision, .fallback = false});
  }
  static Result<Session> on_cpu_session(const Program& program) {
    return Session::create(program, {.target = "cpu", .threads = 1});
  }
};

TEST_P(GpuStates, RunsDoNotLookAtTheHostsBytes) {
  const OpTable ops;
  PackedConstants packed;
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.options);
    const GpuOptions with(form.options);
    const auto graph = parse(kStates);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    TensorType x_type{DType::kF32, {Dim(2), Dim(4)}, nullptr};
    const auto types = infer_types(*graph, {&x_type, 1}, std::vector<ConstantPtr>(1), ops);
    ASSERT_TRUE(types.ok()) << types.status().message();
    std::vector<int32_t> nodes;
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      if (!types->computed[i]) nodes.push_back(static_cast<int32_t>(i));
    }
    std::vector<ValueId> inputs = graph->inputs, outputs = graph->outputs;
    std::vector<SegmentState> states;
    for (size_t i = 0; i < graph->states.size(); ++i) {
      inputs.push_back(graph->states[i].input);
      if (graph->states[i].name == "shown") continue;  // others read it
      outputs.push_back(graph->states[i].output);
      states.push_back({i, inputs.size() - 1, outputs.size() - 1});
    }
    const Backend& backend = backend_of(*GetParam());
    const Segment segment{*graph, *types, nodes, inputs, outputs, ops, packed, "", states};
    const auto executable = backend.compile(segment, {name(), "", form.precision});
    ASSERT_TRUE(executable.ok()) << executable.status().message();
    auto kept = (*executable)->keep_states(true), other = (*executable)->keep_states(false);
    ASSERT_TRUE(kept.ok() && *kept && other.ok() && *other);
    std::vector<std::vector<std::byte>> memory;
    std::vector<TensorView> in, out;
    const auto room = [&](ValueId id) -> TensorView {
      const TensorType& type = types->types[static_cast<size_t>(id)];
      memory.emplace_back(static_cast<size_t>(type.bytes()));
      return {&type, memory.back().data()};
    };
    for (ValueId id : inputs) in.push_back(room(id));
    for (ValueId id : outputs) out.push_back(room(id));
    for (const SegmentState& s : states) {
      const size_t i = static_cast<size_t>(&s - states.data());
      const Constant& initial = *graph->states[s.index].initial;
      const bool keeps = graph->states[s.index].name != "rounded";
      EXPECT_EQ((*kept)->keeps(i), keeps) << graph->states[s.index].name;
      if (!keeps) continue;
      in[s.input].bytes = out[s.output].bytes = nullptr;
      for (KeptStates* each : {kept->get(), other->get()}) ASSERT_TRUE(each->write(i, initial.data()).ok());
    }
    RunContext context;
    context.states = kept->get();
    int32_t turns = -7;
    const auto value = [&](KeptStates& of) {
      int32_t read = 0;
      EXPECT_TRUE(of.read(1, reinterpret_cast<std::byte*>(&read)).ok());
      return read;
    };
    for (int run = 0; run < 6; ++run) {
      ASSERT_TRUE((*executable)->run(context, in, out).ok());
      EXPECT_EQ(value(**kept), turns) << "before commit()";
      if (run % 3 == 2) continue;  // as if it had not been
      (*kept)->commit();
      EXPECT_EQ(value(**kept), ++turns);
      EXPECT_EQ(value(**other), -7) << "sessions have states of their own";
    }
    int64_t seen = 0;
    bool odd = true;
    ASSERT_TRUE((*kept)->read(2, reinterpret_cast<std::byte*>(&seen)).ok());
    ASSERT_TRUE((*kept)->read(3, reinterpret_cast<std::byte*>(&odd)).ok());
    EXPECT_EQ(seen, 504);
    EXPECT_TRUE(odd) << "turned over four times";
    const int64_t wide = int64_t{1} << 40;
    const Status refused = (*kept)->write(2, reinterpret_cast<const std::byte*>(&wide));
    EXPECT_EQ(refused.code(), Code::kDeviceLost);
    EXPECT_NE(refused.message().find("32-bit integers, and a state is 1099511627776"), std::string::npos);
    EXPECT_EQ(refused.rule(), "V-9") << "the device is well";
  }
}

TEST_P(GpuStates, FollowTheCpuWhateverIsDoneWithThem) {
  for (const std::string& text : {std::string(kStates), large_states()}) {
    const Program program = program_of(text);
    for (const Form& form : kForms) {
      SCOPED_TRACE(str_cat(form.options, " ", form.precision));
      const GpuOptions with(form.options);
      Random random(case_seed("gpu states", 0));
      auto own = session(program, form.precision), other = session(program, form.precision);
      auto reference = on_cpu_session(program);
      ASSERT_TRUE(own.ok() && other.ok()) << own.status().message();
      ASSERT_TRUE(reference.ok());
      std::vector<std::byte> saved, saved_reference;
      for (int run = 0; run < 60; ++run) {
        SCOPED_TRACE(run);
        const int64_t t = random.integer(1, 4);
        const auto seed = static_cast<uint64_t>(random.integer(0, 1 << 30));
        const Status status = step(*own, t, seed);
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(step(*reference, t, seed).ok());
        expect_same(own->output(0), reference->output(0), form.bound);
        ASSERT_FALSE(HasFatalFailure());
        ASSERT_TRUE(step(*other, 1, seed + 1).ok());  // has states of its own
        switch (random.integer(0, 7)) {
          case 0:
            expect_states(*own, *reference, form.bound);
            break;
          case 1: {
            const Tensor now = *reference->state(0);
            std::vector<float> values(static_cast<size_t>(now.type.elements()));
            for (float& v : values) v = random.uniform(-1.0f, 1.0f);
            Tensor value = now;
            value.memory.host = values.data();
            ASSERT_TRUE(own->set_state(0, value).ok() && reference->set_state(0, value).ok());
            break;
          }
          case 2:
            ASSERT_TRUE(own->reset_state().ok() && reference->reset_state().ok());
            break;
          case 3: {
            auto a = own->save_state(), b = reference->save_state();
            ASSERT_TRUE(a.ok() && b.ok());
            saved = std::move(*a);
            saved_reference = std::move(*b);
            break;
          }
          case 4:
            if (saved.empty()) break;
            ASSERT_TRUE(own->restore_state(saved).ok() && reference->restore_state(saved_reference).ok());
            break;
          case 5: {
            auto forked = own->fork();
            ASSERT_TRUE(forked.ok()) << forked.status().message();
            own = std::move(forked);
            break;
          }
          default:
            break;
        }
        ASSERT_FALSE(HasFatalFailure());
      }
      expect_states(*own, *reference, form.bound);
    }
  }
}

// The memory of a second session's states, too, which is made when it first runs.
TEST_P(GpuStates, AnyBufferMayFail) {
  const Program program = program_of(kStates);
  int elsewhere = 0;
  for (int n = 1; n < 60; ++n) {
    SCOPED_TRACE(n);
    const GpuOptions with(str_cat("no_self_check,staging,fail_buffer=", n));
    bool on_cpu = false;
    for (const bool fallback : {true, false}) {
      const Options options{.target = name(), .threads = 1, .fallback = fallback};
      auto first = Session::create(program, options), second = Session::create(program, options);
      auto reference = on_cpu_session(program);
      ASSERT_TRUE(reference.ok());
      if (!fallback) {
        for (auto* session : {&first, &second}) {
          Status status = session->status();
          if (status.ok()) status = step(**session, 1, 1);
          if (!status.ok()) EXPECT_EQ(status.code(), Code::kDeviceLost) << status.message();
        }
        continue;
      }
      ASSERT_TRUE(first.ok() && second.ok());
      for (uint64_t run = 0; run < 3; ++run) {
        ASSERT_TRUE(step(*reference, 1, run).ok());
        for (auto* session : {&first, &second}) {
          const Status status = step(**session, 1, run);
          ASSERT_TRUE(status.ok()) << status.message();
          expect_states(**session, *reference, 1e-4);
        }
      }
      for (auto* session : {&first, &second}) {
        for (const Placement& row : (*session)->placement()) on_cpu |= row.backend == "cpu";
      }
    }
    elsewhere += on_cpu;
    if (!on_cpu) {
      EXPECT_GT(elsewhere, 6) << "states have four buffers, and a session's run three more";
      return;
    }
  }
  FAIL() << "60 buffers for a small network";
}

TEST_P(GpuStates, AForkedChildSaysThatTheyStayedBehind) {
  const GpuOptions with("no_self_check");
  const Program program = program_of(kStates);
  auto own = session(program);
  auto elsewhere = Session::create(program, {.target = name(), .threads = 1});
  ASSERT_TRUE(own.ok() && step(*own, 1, 1).ok());
  ASSERT_TRUE(elsewhere.ok() && step(*elsewhere, 1, 1).ok());
  const int status = in_child([&] {
    const auto state = own->state(0);
    if (state.status().code() != Code::kDeviceLost) return 1;
    if (state.status().message().find("state 'sum' cannot be had from its device: ") != 0) return 2;
    if (step(*own, 1, 2).code() != Code::kDeviceLost) return 3;
    if (!elsewhere->reset_state().ok()) return 4;
    if (!step(*elsewhere, 1, 1).ok()) return 5;
    const auto first = elsewhere->state(1);
    return first.ok() && *static_cast<const int32_t*>(first->memory.host) == -6 ? 0 : 6;
  });
  EXPECT_EQ(status, 0);
  auto reference = on_cpu_session(program);
  ASSERT_TRUE(reference.ok() && step(*reference, 1, 1).ok());
  ASSERT_TRUE(step(*own, 2, 2).ok() && step(*reference, 2, 2).ok());
  expect_states(*own, *reference, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Drivers, GpuStates, ::testing::ValuesIn(gpu_drivers()), driver_name);

}  // namespace
}  // namespace pinnace::testing
