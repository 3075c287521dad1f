// Sizes, indices and counts that come with the data, through a session: every case that has integer inputs is compiled
// once and then run with hostile contents. A run ends soon, with a typed error or a result, within a limit of memory;
// and the session still gives the first answer afterwards.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include <pinnace/model.h>

#include "base/status.h"
#include "cases/run_case.h"
#include "cpp/counted_memory.h"
#include "cpp/text_program.h"

namespace pinnace::testing {

void PrintTo(const CaseList& list, std::ostream* out);

namespace {

constexpr size_t kLimitBytes = 64 << 20;
constexpr auto kPatience = std::chrono::milliseconds(300);

std::vector<Tensor> tensors_of(const BuiltCase& built) {
  std::vector<Tensor> all;
  for (const CaseTensor& t : built.inputs) {
    if (!t.present) continue;
    Tensor tensor;
    tensor.type = t.type;
    tensor.memory.host = const_cast<std::byte*>(t.bytes->data());
    tensor.memory.bytes = t.bytes->bytes();
    all.push_back(std::move(tensor));
  }
  return all;
}

/// Runs; a loop that was told to run for ever is cancelled, and stops.
Status run_for_a_while(Session& session, const std::vector<Tensor>& inputs) {
  auto run = session.submit(inputs);
  if (!run.ok()) return run.status();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!run->done() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  if (!run->done()) run->cancel();
  return run->wait();
}

std::vector<std::vector<std::byte>> outputs_of(const Session& session) {
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const Tensor t = session.output(static_cast<int>(i));
    const auto* bytes = static_cast<const std::byte*>(t.memory.host);
    all.emplace_back(bytes, bytes + t.type.bytes());
  }
  return all;
}

/// Runs with elements of input i replaced, all and then the first ones.
template <class T>
void try_values(Session& session, const std::vector<Tensor>& valid, size_t i, bool loops,
                std::initializer_list<T> values) {
  const size_t count = valid[i].memory.bytes / sizeof(T);
  for (const T value : values) {
    for (size_t at = 0; at <= std::min<size_t>(count, 3); ++at) {  // 0: all
      std::vector<T> elements(count);
      std::memcpy(elements.data(), valid[i].memory.host, valid[i].memory.bytes);
      std::fill(elements.begin() + static_cast<ptrdiff_t>(at ? at - 1 : 0),
                at ? elements.begin() + static_cast<ptrdiff_t>(at) : elements.end(), value);
      std::vector<Tensor> inputs = valid;
      inputs[i].memory.host = elements.data();
      SCOPED_TRACE(str_cat("input ", i, at ? str_cat("[", at - 1, "]") : std::string(" all"), " = ", value));
      const MemoryWatch watch(kLimitBytes);
      const Status status = loops ? run_for_a_while(session, inputs) : session.run(inputs);
      EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument || status.code() == Code::kUnsupported ||
                  status.code() == Code::kOutOfMemory || (loops && status.code() == Code::kCancelled))
          << code_name(status.code()) << ": " << status.message();
      EXPECT_EQ(watch.overdrawn(), 0u) << "a container that cannot be refused took that many bytes";
    }
  }
}

void check_case(const BuiltCase& built) {
  auto model = Model::parse(print(built.graph), {.disabled_passes = {"all"}});
  if (!model.ok()) return;  // what contents alone decide, the rank of a result, has to be known here
  const auto program = model->build();
  ASSERT_TRUE(program.ok()) << program.status().message();
  auto session = Session::create(*program, {.threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<Tensor> valid = tensors_of(built);
  const Status first = session->run(valid);
  ASSERT_TRUE(first.ok()) << first.message();
  const auto want = outputs_of(*session);
  const bool loops = built.op_name == "loop";
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i].memory.bytes == 0) continue;
    if (valid[i].type.dtype == DType::kI64) {
      try_values<int64_t>(*session, valid, i, loops,
                          {0, -1, 1, 7, INT64_MIN, INT64_MAX, int64_t{1} << 31, 1000000000000, -1000000000000});
    } else if (valid[i].type.dtype == DType::kI32) {
      try_values<int32_t>(*session, valid, i, loops, {0, -1, 7, INT32_MIN, INT32_MAX});
    }
  }
  const Status last = session->run(valid);
  ASSERT_TRUE(last.ok()) << last.message();
  EXPECT_EQ(outputs_of(*session), want) << "the session gives another answer after refused runs";
}

/// A case that is an error is one too where its integers come with a run, and the session then goes on.
void check_refusal(const BuiltCase& built) {
  auto model = Model::parse(print(built.graph), {.disabled_passes = {"all"}});
  if (!model.ok()) return;
  const auto program = model->build();
  if (!program.ok()) return;
  auto session = Session::create(*program, {.threads = 1});
  if (!session.ok()) return;
  for (int i = 0; i < 2; ++i) {
    const Status status = session->run(tensors_of(built));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
    EXPECT_NE(status.message().find(built.expect.error_text), std::string::npos) << status.message();
  }
}

class HostileSession : public ::testing::TestWithParam<CaseList> {};

TEST_P(HostileSession, Survives) {
  const CaseList& list = GetParam();
  for (size_t i = 0; i < list.cases.size(); ++i) {
    const auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
    if (!built.ok()) continue;
    const bool integers = std::any_of(built->inputs.begin(), built->inputs.end(), [](const CaseTensor& t) {
      return t.present && kIndices >> static_cast<int>(t.type.dtype) & 1;
    });
    if (!integers) continue;
    SCOPED_TRACE(str_cat(list.op, " case ", i, " (", list.cases[i].inputs, "; ", list.cases[i].attributes, "), seed ",
                         test_seed()));
    built->expect.error ? check_refusal(*built) : check_case(*built);
  }
}

/// By nodes of reference code and of kernels, which would walk 2^40 rows or rows of 2^40 elements of nothing.
TEST(HostileSessions, AnEmptyTensorCostsNothingHoweverLargeItsOtherSizes) {
  for (const std::string_view shape : {"0,1099511627776", "1099511627776,0"}) {
    for (const std::string_view op : {"cum_max(%x) {axis=0}", "lp_normalization(%x)", "lrn(%x) {size=3}",
                                      "eye_like(%x)", "softmax(%x)", "tanh(%x)", "cum_max(%x) {axis=1}"}) {
      const std::string text = str_cat("graph \"g\" {\n  input %x : f32[", shape, "]\n  %y : f32[", shape, "] = ", op,
                                       "\n  output \"y\" %y\n}");
      SCOPED_TRACE(text);
      auto model = Model::parse(text, {.disabled_passes = {"all"}});
      ASSERT_TRUE(model.ok()) << model.status().message();
      const auto program = model->build();
      ASSERT_TRUE(program.ok()) << program.status().message();
      auto session = Session::create(*program, {.threads = 1});
      ASSERT_TRUE(session.ok()) << session.status().message();
      Tensor x;
      x.type = session->inputs()[0].type;
      ASSERT_TRUE(session->run(std::vector{x}).ok());
      EXPECT_EQ(session->output(0).type.elements(), 0);
    }
  }
}

/// Sizes that overflow beside one of 0 are refused, wherever it stands: products of some of them are taken too.
TEST(HostileSessions, AnEmptyTensorIsNoLargerThanMemoryCanBe) {
  constexpr int64_t kMuch = int64_t{1} << 40;
  auto session = Session::create(program_of("graph \"g\" { symbol a 0..inf symbol b 0..inf symbol c 0..inf "
                                            "input %x : f32[a,b,c] %y : f32[a,b,c] = softmax(%x) {axis=1} "
                                            "output \"y\" %y }"),
                                 {.threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const Shape& shape : {Shape{0, kMuch, kMuch}, Shape{kMuch, 0, kMuch}, Shape{kMuch, kMuch, 0}}) {
    Tensor x;
    x.type.shape = shape;
    const Status status = session->run(std::vector{x});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("larger than memory can be"), std::string::npos) << status.message();
  }
  Tensor x;
  x.type.shape = {0, kMuch, 3};
  EXPECT_TRUE(session->run(std::vector{x}).ok());
}

/// A node whose rule needs a number of the run's is planned when that is there; one that only checks that it is a
/// number stays among the others.
TEST(HostileSessions, OnlyNumbersThatDecideSizesAreAskedForAgain) {
  constexpr std::pair<std::string_view, bool> kNodes[] = {
      {"input %n : i64[2] %y : f32[2,3] = expand(%x, %n)", true},
      {"input %n : i64[2] %y : f32[] = reduce_sum(%x, %n) {keepdims=0}", true},
      {"input %n : i64[] %y : f32[2,3] = trilu(%x, %n)", false},
      {"input %n : f32[] const %p : i64[4] = {1,0,0,1} %y : f32[3,4] = pad(%x, %p, %n)", false},
      {"input %n : i64[1] %y : f32[1,3] = gather(%x, %n)", false},
  };
  for (const auto& [node, again] : kNodes) {
    const std::string text = str_cat("graph \"g\" { input %x : f32[2,3] ", node, " output \"y\" %y }");
    SCOPED_TRACE(text);
    auto session = Session::create(program_of(text), {.threads = 1});
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ(session->placement()[0].kernel == "chosen when sizes are known", again);
  }
}

/// Once a run has chosen a kernel for a node whose sizes come with the run, placement says which; for other sizes the
/// next run chooses anew.
TEST(HostileSessions, PlacementSaysWhatARunHasChosen) {
  auto session =
      Session::create(program_of(R"(graph "g" { symbol a 0..inf input %x : f32[a] %n : i64[1,?] = non_zero(%x)
      %t : i64[?,1] = transpose(%n) {perm=[1,0]} %f : f32[?,1] = cast(%t) {to="f32"}
      %y : f32[?,1] = relu(%f) output "y" %y })"),
                      {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto kernel_of = [&](std::string_view op) -> std::string {
    for (const Placement& row : session->placement()) {
      if (row.op == op) return row.kernel;
    }
    return "none";
  };
  EXPECT_EQ(kernel_of("relu"), "chosen when sizes are known");
  for (const int64_t size : {int64_t{5}, int64_t{1000}, int64_t{5}}) {
    std::vector<float> x(static_cast<size_t>(size), 1.0f);
    Tensor in;
    in.type = {DType::kF32, {Dim(size)}, nullptr};
    in.memory = {x.data(), x.size() * sizeof(float)};
    ASSERT_TRUE(session->run(std::vector{in}).ok());
    const auto events = session->profile(std::vector{in});
    ASSERT_TRUE(events.ok());
    for (const ProfileEvent& event : *events) EXPECT_EQ(kernel_of(event.op), event.kernel) << event.op;
    EXPECT_NE(kernel_of("relu"), "chosen when sizes are known");
  }
}

/// An input without elements has no unknown contents, when a session is made and when it runs, where it may come
/// without memory.
TEST(HostileSessions, AnEmptyListOfNumbersIsKnown) {
  constexpr std::pair<std::string_view, bool> kPrograms[] = {
      {"input %x : f32[0,3,4] input %n : i64[0] %y : f32[?,?,?] = reshape(%x, %n) {allowzero=1}", false},
      {"input %x : f32[] input %n : i64[0] %y : f32[] = expand(%x, %n)", true},
      {"input %x : f32[2] input %n : i64[0] %y : f32[?] = reshape(%x, %n)", false},
      {"input %x : f32[0] input %n : i64[0] %y : i64[1,?] = non_zero(%x)", true},
      {"input %x : i64[0] input %n : i64[0] %y : i64[?] = unique(%x)", true},
  };
  for (const auto& [program, good] : kPrograms) {
    const std::string text = str_cat("graph \"g\" { ", program, " output \"y\" %y }");
    SCOPED_TRACE(text);
    auto model = Model::parse(text, {.disabled_passes = {"all"}});
    if (!model.ok()) {
      EXPECT_FALSE(good) << model.status().message();
      continue;
    }
    const auto built = model->build();
    ASSERT_TRUE(built.ok()) << built.status().message();
    auto session = Session::create(*built, {.threads = 1});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const float one = 1;
    std::vector<Tensor> inputs;
    for (const auto& input : session->inputs()) {
      Tensor tensor;
      tensor.type = input.type;
      if (tensor.type.elements()) {
        tensor.memory.host = const_cast<float*>(&one);
        tensor.memory.bytes = tensor.type.bytes();
      }
      inputs.push_back(tensor);
    }
    const Status status = session->run(inputs);
    EXPECT_EQ(status.ok(), good) << status.message();
  }
}

/// Cases that cannot be compiled without their contents stay the exception, or the test above tests nothing.
TEST(HostileSessions, MostCasesCompileWithoutContents) {
  int compiled = 0, refused = 0;
  std::string refusals;
  for (const CaseList& list : all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      if (!built.ok() || built->expect.error) continue;
      const auto model = Model::parse(print(built->graph), {.disabled_passes = {"all"}});
      ++(model.ok() ? compiled : refused);
      if (!model.ok()) refusals += model.status().message() + "\n";
    }
  }
  EXPECT_LT(refused * 50, compiled) << refusals;
}

INSTANTIATE_TEST_SUITE_P(Operators, HostileSession, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace pinnace::testing
