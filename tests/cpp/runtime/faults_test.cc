// Every public call of the runtime while each allocation, each call of the file system, each start of a thread and each
// call of a device fails once: a typed error or the right result, nothing half-written, the same object works again,
// nothing is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include <pinnace/pinnace.h>

#include "base/exception_boundary.h"
#include "base/log.h"
#include "base/threads/thread_pool.h"
#include "cpp/fault_harness.h"
#include "cpp/program/program_fixture.h"
#include "fakes/backend.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

/// A product whose weights are packed, and a state that counts runs.
constexpr const char* kSmall = R"(graph "small" {
  symbol n 1..4
  input %x : f32[n,4]
  const %w : f32[4,3] = {1,2,3,4,5,6,7,8,9,10,11,12}
  const %one : f32[2] = {1,1}
  state "count" %s : f32[2] next %t = {1,1}
  %m : f32[n,3] = mat_mul(%x, %w)
  %r : f32[n,3] = relu(%m)
  %z : f32[n,3] = softmax(%r) {axis=1}
  %t : f32[2] = add(%s, %one)
  output "y" %z
})";

/// Bodies, scanned outputs, and sizes that data decide.
constexpr const char* kControl = R"(graph "control" {
  input %x : f32[2,4]
  const %trips : i64[] = {3}
  %at : i64[2,?<=8] = non_zero(%x)
  %last : f32[2,4], %all : f32[?,2,4] = loop(%trips, none, %x, %x) {carried=1, body=graph "body" {
    input %i : i64[]
    input %c : bool[]
    input %a : f32[2,4]
    input %b : f32[2,4]
    %sum : f32[2,4] = add(%a, %b)
    output "c" %c
    output "sum" %sum
    output "each" %sum
  }}
  output "y" %all
  output "at" %at
})";

/// Products of integers, and integers that are read as they are stored.
constexpr const char* kQuantised = R"(graph "quantised" {
  input %x : f32[2,4]
  const %sx : f32[] = {0.03125}
  const %zx : u8[] = {128}
  const %sy : f32[] = {0.5}
  const %w : i8[3,4]{scales [0.5,0.25,0.5], zeros [0,0,0], axis 0} = {1,2,3,4,5,6,7,8,9,10,11,12}
  const %b : i32[3] = {1,2,3}
  %u : u8[2,4] = quantize_linear(%x, %sx, %zx)
  %q : u8[2,4]{scale 0.03125, zero 128} = cast(%u) {to="u8"}
  %m : u8[2,3]{scale 0.5, zero 128} = gemm(%q, %w, %b) {trans_b=1, activation="relu"}
  %v : u8[2,3] = cast(%m) {to="u8"}
  %y : f32[2,3] = dequantize_linear(%v, %sy, %zx)
  output "y" %y
})";

/// For the fake back end.
constexpr const char* kConv = R"(graph "conv" {
  input %x : f32[1,2,2,2]
  const %w : f32[3,2,1,1] = {1,2,3,4,5,6}
  %c : f32[1,3,2,2] = conv(%x, %w)
  %r : f32[1,3,2,2] = relu(%c)
  %s : f32[1,3,2,2] = sigmoid(%r)
  %a : f32[1,3,2,2] = add(%s, %r)
  output "y" %a
})";

Program program_of(const char* text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto bytes = write_program(*graph, {{"producer", "test"}}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load(to_vector(*bytes));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A program with inputs for it and what it gives: eight floats go in.
struct Net {
  Program program;
  std::vector<float> x = {1, -2, 3, 0.5f, 0, 1, -1, 2};
  std::vector<Tensor> inputs;
  std::string right;

  explicit Net(const char* text) : program(program_of(text)) {
    Tensor tensor;
    for (const Dim& d : program.inputs()[0].type.shape) tensor.type.shape.push_back(Dim(d.known() ? d.size : 2));
    tensor.memory.host = x.data();
    tensor.memory.bytes = x.size() * sizeof(float);
    inputs = {tensor};
    auto session = Session::create(program, {.target = "cpu", .threads = 1});
    EXPECT_TRUE(session.ok()) << session.status().message();
    EXPECT_TRUE(session->run(inputs).ok());
    right = outputs(*session);
    EXPECT_GT(right.size(), 8u);
  }
  static std::string outputs(const Session& session) {
    std::string all;
    for (size_t i = 0; i < session.outputs().size(); ++i) {
      const Tensor t = session.output(static_cast<int>(i));
      if (t.memory.host) all.append(static_cast<const char*>(t.memory.host), t.memory.bytes);
    }
    return all;
  }
  /// What is wrong with a session that must run now.
  std::string check(Session& session) const {
    if (const Status status = session.run(inputs); !status.ok()) return "runs no more: " + status.message();
    return outputs(session) == right ? "" : "gives other numbers";
  }
};

using enum Fault;

class Faults : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  }
};

TEST_P(Faults, OpenAndRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.pnc");
  const Program small = program_of(kSmall);
  ASSERT_TRUE(small.save(path).ok());
  std::optional<Program> opened;
  const auto again = [&](const Status& status) -> std::string {
    auto program = Program::open(path);
    if (!program) return "cannot be opened any more: " + program.status().message();
    if (status.ok() && opened->text() != program->text()) return "what was opened is another";
    return program->text() == small.text() ? "" : "another program";
  };
  const auto open = [&](Verify verify) {
    auto result = Program::open(path, verify);
    if (result) opened.emplace(std::move(*result));
    return result.status();
  };
  const auto close = [&] { opened.reset(); };
  fail_everywhere(
      {"open .pnc", [] {}, [&] { return open(Verify::kFull); }, again, close, {kAllocation, kNoMoreAllocations, kFile}},
      GetParam());
  const auto bytes = small.bytes();
  fail_everywhere({"program from bytes", [] {},
                   [&] {
                     auto result = Program::from_bytes(bytes);
                     if (result) opened.emplace(std::move(*result));
                     return result.status();
                   },
                   again, [&] { opened.reset(); }},
                  GetParam());
  const std::string key = "a key that is long enough to be allocated", value = "a value that is long enough, too";
  fail_everywhere({"metadata", [] {},
                   [&] {
                     auto result = small.with_metadata(key, value);
                     if (result) opened.emplace(std::move(*result));
                     return result.status();
                   },
                   [&](const Status& status) {
                     return !status.ok() || opened->text() == small.text() ? std::string() : "another program";
                   },
                   [&] { opened.reset(); }},
                  GetParam());
}

TEST_P(Faults, Save) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.pnc");
  const Program small = program_of(kSmall);
  const std::string whole(reinterpret_cast<const char*>(small.bytes().data()), small.bytes().size());
  const std::string older = "what was there before";
  const auto before = [&] { std::ofstream(path, std::ios::binary) << older; };
  const auto after = [&](const Status& status) -> std::string {
    if (folder.names() != std::vector<std::string>{"a.pnc"}) return "other files are left in the folder";
    const std::string now = bytes_of(path);
    if (now != whole && (status.ok() || now != older)) return "the file is half-written";
    if (const Status saved = small.save(path); !saved.ok()) return "cannot be saved any more: " + saved.message();
    return bytes_of(path) == whole ? "" : "the second save wrote something else";
  };
  fail_everywhere(
      {"save", before, [&] { return small.save(path); }, after, [] {}, {kAllocation, kNoMoreAllocations, kFile}},
      GetParam());
}

/// With everything told: the messages that lack memory are lost, and nothing else changes.
TEST_P(Faults, SessionsWithALog) {
  const Net net(kSmall);
  static int64_t messages = 0;
  messages = 0;
  std::optional<Session> session;
  const auto end = [&] {
    session.reset();
    EXPECT_TRUE(set_log_sink(nullptr).ok());
  };
  fail_everywhere(
      {"session that logs",
       [] { EXPECT_TRUE(set_log_sink([](void*, LogLevel, std::string_view) { ++messages; }, LogLevel::kTrace).ok()); },
       [&] {
         auto made = Session::create(net.program, {.target = "cpu", .threads = 1});
         if (!made) return made.status();
         session.emplace(std::move(*made));
         return session->run(net.inputs);
       },
       [&](const Status&) { return session ? net.check(*session) : std::string(); }, end},
      GetParam());
  EXPECT_GT(messages, 0);
}

TEST_P(Faults, Sessions) {
  for (const char* text : {kSmall, kControl, kQuantised}) {
    const Net net(text);
    const std::string name = net.program.data().graph.name;
    const Options options{.target = "cpu", .threads = 1};
    std::optional<Session> session;
    const auto create = [&] {
      auto made = Session::create(net.program, options);
      if (made) session.emplace(std::move(*made));
      return made.status();
    };
    const auto check = [&](const Status& status) -> std::string {
      if (!session) {
        if (status.ok()) return "no session";
        if (const Status now = create(); !now.ok()) return "none can be made any more: " + now.message();
      }
      for (int i = 0; i < 2; ++i) {
        if (const std::string wrong = net.check(*session); !wrong.empty()) return wrong;
      }
      return "";
    };
    const auto end = [&] { session.reset(); };
    const auto make = [&] { ASSERT_TRUE(create().ok()); };
    fail_everywhere({"plan and create, " + name, [] {}, create, check, end}, GetParam());
    fail_everywhere({"first run, " + name, make, [&] { return session->run(net.inputs); }, check, end}, GetParam());
    std::vector<ProfileEvent> events;
    fail_everywhere({"profile, " + name, make,
                     [&] {
                       auto profiled = session->profile(net.inputs);
                       if (profiled) events = std::move(*profiled);
                       return profiled.status();
                     },
                     check,
                     [&] {
                       events = {};
                       session.reset();
                     }},
                    GetParam());
    fail_everywhere({"run on a thread, " + name,
                     make,
                     [&] {
                       auto run = session->submit(net.inputs);
                       return run ? run->wait() : run.status();
                     },
                     check,
                     end,
                     {kAllocation, kNoMoreAllocations, kThread}},
                    GetParam());
  }
}

// A copy that stops half-way destroys what it has made and nothing else.
TEST_P(Faults, ACopyOfANode) {
  Node node, copy;
  node.op = "an operator with a name that is long enough to be allocated";
  node.attrs = {{"a list of integers, as long a name", std::vector<int64_t>{1, 2, 3}},
                {"a list of texts, as long a name", std::vector<std::string>{"one that is long enough", "another one"}},
                {"a text, as long a name as others", std::string("a text that is long enough to be allocated")}};
  fail_everywhere(
      {"copy of a node", [] {},
       [&] {
         return exception_boundary([&] {
           copy = node;
           return Status();
         });
       },
       [&](const Status& status) { return !status.ok() || copy.attrs == node.attrs ? std::string() : "another node"; },
       [&] { copy = Node(); }},
      GetParam());
}

// A run on several threads may do with fewer; what fails on a worker fails the run.
TEST_P(Faults, Threads) {
  ThreadPool* pool = nullptr;
  std::vector<std::string> texts(64);
  const auto end = [&] {
    delete pool;
    pool = nullptr;
    for (std::string& text : texts) text = std::string();
  };
  const auto run = [&]() -> Status {
    return exception_boundary([&]() -> Status {
      pool->run(64, 4,
                [&](int64_t i) { texts[static_cast<size_t>(i)] = std::string(100, static_cast<char>('a' + i % 26)); });
      return {};
    });
  };
  const auto check = [&](const Status&) -> std::string {
    if (!run().ok()) return "the pool does not work any more";
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i] != std::string(100, static_cast<char>('a' + i % 26))) return "a task was left out";
    }
    return "";
  };
  fail_everywhere(
      {"tasks of a pool", [&] { pool = new ThreadPool; }, run, check, end, {kAllocation, kNoMoreAllocations, kThread}},
      GetParam());
}

TEST_P(Faults, States) {
  const Net net(kSmall);
  auto session = Session::create(net.program, {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->run(net.inputs).ok());
  const auto now = [&] {
    const auto state = session->state(0);
    return state ? *static_cast<const float*>(state->memory.host) : -1.0f;
  };
  float before = 0;
  const auto note = [&] { before = now(); };
  const auto unless = [&](float wanted) {
    return [&, wanted](const Status& status) -> std::string {
      const float want = !status.ok() ? before : wanted < 0 ? before + 1 : wanted;
      if (now() != want) return "the state is " + std::to_string(now()) + ", should be " + std::to_string(want);
      return net.check(*session);
    };
  };
  fail_everywhere({"run with a state", note, [&] { return session->run(net.inputs); }, unless(-1), [] {}, {}},
                  GetParam());
  fail_everywhere(
      {"profile with a state", note, [&] { return session->profile(net.inputs).status(); }, unless(-1), [] {}},
      GetParam());
  float value[2] = {7, 7};
  Tensor given;
  given.type.shape = {2};
  given.memory.host = value;
  given.memory.bytes = sizeof value;
  fail_everywhere({"set_state", note, [&] { return session->set_state(0, given); }, unless(7), [] {}}, GetParam());
  fail_everywhere({"reset_state", note, [&] { return session->reset_state(); }, unless(1), [] {}, {}}, GetParam());
  std::vector<std::byte> saved;
  const auto save = [&]() -> Status {
    PINNACE_ASSIGN(saved, session->save_state());
    return {};
  };
  const auto unchanged = [&](const Status&) { return now() == before ? std::string() : "the state has changed"; };
  fail_everywhere({"save_state", note, save, unchanged, [] {}}, GetParam());
  const float here = now();
  fail_everywhere({"restore_state", note, [&] { return session->restore_state(saved); }, unless(here), [] {}},
                  GetParam());
  fail_everywhere({"fork", note, [&] { return session->fork().status(); }, unchanged, [] {}}, GetParam());
  fail_everywhere({"state", note, [&] { return session->state(0).status(); },
                   [&](const Status&) { return now() == before ? std::string() : "the state has changed"; }, [] {}},
                  GetParam());
}

TEST_P(Faults, AProfileOfTheCInterface) {
  const Net net(kSmall);
  const auto bytes = net.program.bytes();
  pnc_program* program = nullptr;
  pnc_session* session = nullptr;
  pnc_options options = {};
  options.target = "cpu";
  options.threads = 1;
  ASSERT_EQ(pnc_program_from_bytes(bytes.data(), bytes.size(), PNC_VERIFY_FULL, &program), PNC_OK);
  ASSERT_EQ(pnc_session_create(program, &options, &session), PNC_OK);
  const pnc_tensor x{net.inputs[0].memory.host, net.inputs[0].memory.bytes, PNC_F32, 2, {2, 4}};
  const auto now = [&] {
    pnc_tensor state{};
    EXPECT_EQ(pnc_session_state(session, 0, &state), PNC_OK);
    return *static_cast<const float*>(state.data);
  };
  float before = 0;
  const pnc_profile_event* events = nullptr;
  int32_t count = 0;
  fail_everywhere({"C interface, a profile with a state", [&] { before = now(); },
                   [&] {
                     return pnc_session_profile(session, &x, 1, nullptr, 0, nullptr, &events, &count) == PNC_OK
                                ? Status()
                                : Status::no_memory();
                   },
                   [&](const Status& status) -> std::string {
                     if (now() != before + (status.ok() ? 1 : 0)) return "the state is " + std::to_string(now());
                     return status.ok() == (events && count) ? "" : "events are given by a failed call, or none";
                   },
                   [&] { pnc_free(std::exchange(events, nullptr)); }},
                  GetParam());
  pnc_session_close(session);
  pnc_program_close(program);
}

/// Every function of the C API that can fail, but for those of streams (stream_faults_test.cc), one after another; the
/// first failure ends them. What it gives is freed.
struct CCalls {
  const std::string path, other_path;
  const Net& net;
  pnc_program *program = nullptr, *other = nullptr;
  pnc_session* session = nullptr;
  pnc_cancel_token* token = nullptr;
  pnc_cancel_scope* scope = nullptr;
  pnc_custom_op* op = nullptr;
  pnc_run* run = nullptr;
  bool right = false;  ///< the last output

  ~CCalls() { end(); }
  void end() {
    pnc_run_close(std::exchange(run, nullptr));
    pnc_cancel_scope_leave(std::exchange(scope, nullptr));
    pnc_session_close(std::exchange(session, nullptr));
    pnc_custom_op_close(std::exchange(op, nullptr));
    pnc_cancel_token_close(std::exchange(token, nullptr));
    pnc_program_close(std::exchange(other, nullptr));
    pnc_program_close(std::exchange(program, nullptr));
    right = false;
  }
  /// A list or text that is given and freed.
  template <class Row, class Object>
  static pnc_status list(pnc_status (*f)(const Object*, const Row**, int32_t*), const Object* of) {
    const Row* rows = nullptr;
    int32_t count = 0;
    const pnc_status status = f(of, &rows, &count);
    if (status != PNC_OK && (rows || count)) return PNC_INVALID_ARGUMENT;  // it fails, and gives something
    pnc_free(rows);
    return status;
  }
  pnc_status again(pnc_status opened) {
    pnc_program_close(std::exchange(other, nullptr));
    return opened;
  }
  static pnc_status no_operator(void*, pnc_op_call*) { return PNC_UNSUPPORTED; }

  pnc_status open() {
    const auto bytes = net.program.bytes();
    pnc_status status = pnc_program_open(path.c_str(), &program);
    if (status == PNC_OK) status = again(pnc_program_open_with(path.c_str(), PNC_VERIFY_FULL, &other));
    if (status == PNC_OK) {
      status = again(pnc_program_from_bytes(bytes.data(), bytes.size(), PNC_VERIFY_FULL, &other));
    }
    if (const int file = status == PNC_OK ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1; file >= 0) {
      status = again(pnc_program_open_descriptor(file, 0, -1, PNC_VERIFY_FULL, &other));
      ::close(file);
    }
    pnc_spec spec;
    pnc_type type;
    for (const auto describe : {pnc_program_input, pnc_program_output, pnc_program_state}) {
      if (status == PNC_OK) status = describe(program, 0, &spec);
    }
    for (const auto describe : {pnc_program_input_type, pnc_program_output_type, pnc_program_state_type}) {
      if (status == PNC_OK) status = describe(program, 0, &type);
    }
    const void* file = nullptr;
    size_t file_bytes = 0;
    if (status == PNC_OK) status = pnc_program_bytes(program, &file, &file_bytes);
    const char* text = nullptr;
    if (status == PNC_OK) status = list(pnc_program_symbols, program);
    if (status == PNC_OK) status = list(pnc_program_metadata, program);
    if (status == PNC_OK) status = list(pnc_program_payloads, program);
    if (status == PNC_OK) status = list(pnc_program_nodes, program);
    if (status == PNC_OK) status = list(pnc_program_constants, program);
    if (status == PNC_OK) status = pnc_program_text(program, 64, &text);
    pnc_free(std::exchange(text, nullptr));
    const pnc_fact fact = {"a key that is long enough to be allocated", "a value"};
    if (status == PNC_OK) status = again(pnc_program_without_payloads(program, &other));
    if (status == PNC_OK) status = pnc_program_with_metadata(program, &fact, 1, &other);
    if (status == PNC_OK) status = pnc_program_diff(program, other, 1, &text);
    pnc_free(text);
    if (status == PNC_OK) status = pnc_program_save(program, other_path.c_str());
    const pnc_device* devices = nullptr;
    int32_t count = 0;
    if (status == PNC_OK) status = pnc_devices(&devices, &count);
    pnc_free(devices);
    return status;
  }
  pnc_status run_and_read() {
    const char* keep = "r";
    pnc_tensor x{net.inputs[0].memory.host, net.inputs[0].memory.bytes, PNC_F32, 2, {2, 4}}, y{}, state{};
    pnc_run_options limits = {};
    pnc_status status = pnc_cancel_token_create(&token);
    if (status == PNC_OK) status = pnc_cancel_scope_enter(&limits, &scope);
    if (status == PNC_OK) status = pnc_custom_op_create("a.b", 1, no_operator, no_operator, nullptr, &op);
    pnc_session_options options = {};
    options.size = sizeof options;
    options.target = "cpu";
    options.threads = 1;
    options.keep = &keep;
    options.keep_count = 1;
    options.ops = &op;
    options.op_count = 1;
    if (status == PNC_OK) status = pnc_session_create_with(program, &options, &session);
    if (status == PNC_OK) status = pnc_session_limit_loops(session, 1000000000);
    if (status == PNC_OK) status = pnc_session_run(session, &x, 1, nullptr, 0);
    limits.cancel = token;
    limits.timeout_ns = int64_t{60} * 1000000000;
    if (status == PNC_OK) status = pnc_session_run_with(session, &x, 1, nullptr, 0, &limits);
    pnc_plan_info plan;
    if (status == PNC_OK) status = pnc_session_plan(session, &plan);
    pnc_spec spec;
    pnc_type type;
    if (status == PNC_OK) status = pnc_session_output_spec(session, 0, &spec);
    if (status == PNC_OK) status = pnc_session_output_type(session, 0, &type);
    if (status == PNC_OK) status = pnc_session_submit(session, &x, 1, nullptr, 0, nullptr, nullptr, nullptr, &run);
    if (status == PNC_OK) status = pnc_run_wait(run);
    if (status == PNC_OK) {
      const pnc_profile_event* events = nullptr;
      int32_t count = 0;
      status = pnc_session_profile(session, &x, 1, nullptr, 0, nullptr, &events, &count);
      pnc_free(events);
    }
    if (status == PNC_OK) status = list(pnc_session_placement, static_cast<const pnc_session*>(session));
    const char* precision = nullptr;
    if (status == PNC_OK) status = pnc_session_precision(session, &precision);
    pnc_free(precision);
    float count[2] = {5, 5};
    const pnc_tensor value = {count, sizeof count, PNC_F32, 1, {2}};
    if (status == PNC_OK) status = pnc_session_state(session, 0, &state);
    if (status == PNC_OK) status = pnc_session_set_state(session, 0, &value);
    if (status == PNC_OK) status = pnc_session_copy_state(session, 0, &value);
    const void* saved = nullptr;
    size_t bytes = 0;
    pnc_session* forked = nullptr;
    if (status == PNC_OK) status = pnc_session_save_state(session, &saved, &bytes);
    if (status == PNC_OK) status = pnc_session_fork(session, &forked);
    if (status == PNC_OK) status = pnc_session_restore_state(forked, saved, bytes);
    pnc_session_close(forked);
    pnc_free(saved);
    if (status == PNC_OK) status = pnc_session_reset_state(session);
    if (status == PNC_OK) status = pnc_session_output(session, 0, &y);
    right = status == PNC_OK && y.bytes == net.right.size() && !std::memcmp(y.data, net.right.data(), y.bytes);
    return status;
  }
  pnc_status all() {
    const pnc_status status = open();
    return status == PNC_OK ? run_and_read() : status;
  }
};

TEST_P(Faults, CInterface) {
  const TemporaryFolder folder;
  const Net net(kSmall);
  ASSERT_TRUE(net.program.save(folder.file("a.pnc")).ok());
  CCalls calls{folder.file("a.pnc"), folder.file("b.pnc"), net};
  pnc_status first = PNC_OK;
  bool first_silent = false;
  const auto first_calls = [&] {
    first = exception_boundary([&] { return calls.all(); }, PNC_OUT_OF_MEMORY);
    first_silent = first != PNC_OK && !*pnc_error();
    pnc_cancel_scope_leave(std::exchange(calls.scope, nullptr));  // by the thread that entered it
  };
  const auto check = [&](const Status& status) -> std::string {
    if (!status.ok() && first_silent) return "there is no sentence";
    calls.end();
    if (const pnc_status code = calls.all(); code != PNC_OK) {
      return "does not work any more: " + std::string(pnc_error());
    }
    return calls.right ? "" : "gives other numbers";
  };
  fail_everywhere(
      {"C interface, all calls",
       [] {},
       [&] {
         // On a thread of its own, which has not kept a failure before: that takes no memory either.
         first = PNC_OUT_OF_MEMORY;
         first_silent = false;
         pthread_t thread;
         const auto body = [](void* given) -> void* {
           (*static_cast<decltype(first_calls)*>(given))();
           return nullptr;
         };
         if (pthread_create(&thread, nullptr, body, const_cast<void*>(static_cast<const void*>(&first_calls))) == 0) {
           pthread_join(thread, nullptr);
         }
         return first == PNC_OK ? Status() : Status::no_memory();
       },
       [&](const Status& status) -> std::string {
         if (!status.ok() && first != PNC_OUT_OF_MEMORY && first != PNC_FILE) {
           return "the code is " + std::to_string(first);
         }
         return check(status);
       },
       [&] { calls.end(); },
       {kAllocation, kNoMoreAllocations, kFile, kThread},
       {Code::kOutOfMemory}},
      GetParam());
}

TEST_P(Faults, ADevice) {
  const Net net(kConv);
  fakes::FakeBackend fake;
  for (const bool fallback : {true, false}) {
    Options options;
    options.target = "fake";
    options.threads = 1;
    options.fallback = true;
    options.backends = {&fake};
    fake.opens_anew = !fallback;
    const std::string name = fallback ? ", planned around" : ", opened anew";
    std::optional<Session> session;
    const auto create = [&] {
      auto made = Session::create(net.program, options);
      if (made) session.emplace(std::move(*made));
      return made.status();
    };
    const auto check = [&](const Status&) -> std::string {
      if (!session) {
        if (const Status now = create(); !now.ok()) return "none can be made any more: " + now.message();
      }
      return net.check(*session);
    };
    const auto make = [&] { ASSERT_TRUE(create().ok()); };
    const auto end = [&] { session.reset(); };
    fail_everywhere({"create on a device" + name,
                     [] {},
                     create,
                     check,
                     end,
                     {kAllocation, kNoMoreAllocations, kDevice, kDeviceMemory}},
                    GetParam());
    fail_everywhere({"run on a device" + name,
                     make,
                     [&] { return session->run(net.inputs); },
                     check,
                     end,
                     {kAllocation, kNoMoreAllocations, kDevice, kDeviceMemory}},
                    GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Faults,
                         ::testing::Values(kAllocation, kNoMoreAllocations, kFile, kThread, kDevice, kDeviceMemory),
                         kFaultTestName);

}  // namespace
}  // namespace pinnace::testing
