// Files of earlier versions stay readable for ever. tests/data has one per format version, made once and never again,
// with its text form beside it.
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "cpp/program/program_fixture.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

std::string data_file(const std::string& name) {
  return std::string(PINNACE_TEST_DATA) + "/" + name;
}

TEST(Golden, Version1IsReadAndPrintedAsOnItsFirstDay) {
  auto program = Program::open(data_file("golden_v1.pnc"));
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::ifstream in(data_file("golden_v1.txt"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(program->text(SIZE_MAX), text);
  EXPECT_EQ(program->states().size(), 1u);
  EXPECT_EQ(program->metadata()[0].second, "pinnace 0.1.0");
  EXPECT_EQ(program->data().payloads.size(), 1u);
}

TEST(Golden, Version11HoldsTheSame) {
  auto first = Program::open(data_file("golden_v1.pnc")), program = Program::open(data_file("golden_v1_1.pnc"));
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(diff(*first, *program), std::vector<std::string>());
}

/// The writer of this version still gives these bytes. A later format version may drop this test, not those above.
TEST(Golden, Version11IsWrittenToTheSameBytes) {
  auto program = Program::open(data_file("golden_v1_1.pnc"));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const ProgramData& data = program->data();
  auto again = write_program(data.graph, data.metadata, data.payloads);
  ASSERT_TRUE(again.ok()) << again.status().message();
  const std::vector<std::byte> old(program->bytes().begin(), program->bytes().end());
  EXPECT_EQ(to_vector(*again), old);
  TemporaryFolder folder;
  ASSERT_TRUE(program->save(folder.file("again.pnc")).ok());
  auto saved = Program::open(folder.file("again.pnc"));
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(std::vector<std::byte>(saved->bytes().begin(), saved->bytes().end()), old);
}

}  // namespace
}  // namespace pinnace::testing
