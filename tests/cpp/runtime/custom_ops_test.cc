// Operators of the application: what their functions give is checked before anything is computed with it.
#include <gtest/gtest.h>

#include <cstring>

#include <pinnace/session.h>

#include "cpp/program/program_fixture.h"
#include "graph/graph.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

/// y and, where `kept` says so, the next value of a state are what mylib.make makes of x, float32[n,3].
Program program_of_made(bool kept) {
  auto graph = parse(kept ? R"(graph "kept" {
  symbol n 1..8
  input %x : f32[n,3]
  state "h" %h : f32[3] next %t = {1,2,3}
  %t : f32[3] = relu(%h)
  output "y" %x
})"
                          : R"(graph "made" {
  symbol n 1..8
  input %x : f32[n,3]
  %y : f32[n,3] = relu(%x)
  output "y" %y
})");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  graph->nodes[0]->op = "mylib.make";
  auto bytes = write_program(*graph, {}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  auto program = Program::from_bytes(to_vector(*bytes));
  EXPECT_TRUE(program.ok()) << program.status().message();
  return *program;
}

/// A number that the enumeration does not have, as an application may give it.
DType number(uint8_t given) {
  DType made;
  std::memcpy(&made, &given, sizeof made);
  return made;
}

/// An operator whose outputs have this type, and zeros.
CustomOp making(const TensorType& type) {
  return {"mylib.make", 1,
          [type](auto, const auto&, std::span<TensorType> outputs) {
            outputs[0] = type;
            return Status();
          },
          [](auto, const auto&, std::span<const Tensor> outputs) {
            std::memset(outputs[0].memory.host, 0, outputs[0].memory.bytes);
            return Status();
          }};
}

/// What creating a session or its first run says, into 4 KiB of the caller's or memory of the session.
Status first_run(const Program& program, const CustomOp& op, bool own) {
  auto session = Session::create(program, {.target = "cpu", .threads = 1, .ops = {&op}});
  if (!session.ok()) return session.status();
  float x[3] = {1, 2, 3};
  static float room[1024];
  Tensor input, output;
  input.type.shape = output.type.shape = {1, 3};
  input.memory = {x, sizeof x};
  output.memory = {room, sizeof room};
  return session->run({&input, 1}, {&output, own ? 0u : 1u});
}

TEST(CustomOps, TheirTypesAreThoseThatTheProgramSays) {
  const Program program = program_of_made(false);
  const std::pair<TensorType, std::string> kTypes[] = {
      {{DType::kF32, {1, 3}, nullptr}, ""},
      {{DType::kI64, {1, 3}, nullptr}, "output 'y' would be int64[1,3], the program says float32[n,3]"},
      {{DType::kF32, {1, 4}, nullptr}, "output 'y' would be float32[1,4], the program says float32[n,3]"},
      {{DType::kF32, {5, 3}, nullptr}, "output 'y' would be float32[5,3], the program says float32[n,3]"},
      {{DType::kF32, {3}, nullptr}, "output 'y' would be float32[3], the program says float32[n,3]"},
      {{DType::kF32, {-5, 3}, nullptr}, "shape function: output 0 has a size of -5"},
      {{DType::kF32, {INT64_MIN, 3}, nullptr}, "shape function: output 0 has a size of -9223372036854775808"},
      {{DType::kF32, {int64_t{1} << 62, 3}, nullptr}, "is larger than memory can be"},
      {{number(kDTypeCount), {1, 3}, nullptr}, "shape function: output 0 has dtype 25, which there is not"},
      {{number(255), {1, 3}, nullptr}, "shape function: output 0 has dtype 255, which there is not"},
  };
  for (const auto& [type, sentence] : kTypes) {
    for (const bool own : {true, false}) {
      const Status status = first_run(program, making(type), own);
      EXPECT_EQ(status.code(), sentence.empty() ? Code::kOk : Code::kInvalidArgument) << sentence;
      EXPECT_NE(status.message().find(sentence), std::string::npos) << status.message();
    }
  }
}

TEST(CustomOps, AStateKeepsItsType) {
  const Program program = program_of_made(true);
  EXPECT_TRUE(first_run(program, making({DType::kF32, {3}, nullptr}), true).ok());
  for (const TensorType& type : {TensorType{DType::kI64, {3}, nullptr}, TensorType{DType::kI8, {3}, nullptr},
                                 TensorType{DType::kF32, {4}, nullptr}}) {
    const Status status = first_run(program, making(type), true);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("state 'h' would change its type from float32[3]"), std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace pinnace::testing
