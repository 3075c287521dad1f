// The report of a device: reading kits that anyone may have written, judging arrays, and what stands in a page.
#include "report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cpp/program/program_fixture.h"
#include "graph/graph.h"
#include "program/writer.h"
#include "report/json.h"
#include "report/judge.h"
#include "report/kit.h"

namespace pinnace::report {
namespace {

using Bytes = std::vector<std::byte>;

constexpr const char* kText = R"(graph "g" {
  input %x : f32[2,3]
  const %two : f32[1] = {2}
  %y : f32[2,3] = mul(%x, %two)
  output "double" %y
})";

Bytes program_bytes() {
  const auto graph = parse(kText);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const auto bytes = write_program(*graph, {}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return testing::to_vector(*bytes);
}

template <class T>
void put(Bytes* to, T value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  to->insert(to->end(), from, from + sizeof value);
}

template <class T>
void set(Bytes* in, size_t at, T value) {
  std::memcpy(in->data() + at, &value, sizeof value);
}

/// A tensor as a kit has it.
Bytes tensor(uint32_t dtype, const std::vector<int64_t>& shape, const std::vector<float>& elements) {
  Bytes bytes;
  put(&bytes, dtype);
  put(&bytes, static_cast<uint32_t>(shape.size()));
  for (const int64_t size : shape) put(&bytes, size);
  for (const float element : elements) put(&bytes, element);
  return bytes;
}

struct Part {
  std::string name;
  Bytes bytes;
};

constexpr size_t kHeader = 32;

size_t index_end(const Bytes& kit) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, kit.data() + 24, sizeof bytes);
  return kHeader + bytes;
}

/// Gives header and index the checksum of what they hold now.
void seal(Bytes* kit) {
  const size_t end = index_end(*kit);
  set(kit, end, crc32({kit->data(), end}));
}

/// The file of these ranges, as python/pinnace/device/kit.py writes it.
Bytes pack(const std::vector<Part>& parts) {
  const auto up = [](size_t number, size_t multiple) { return (number + multiple - 1) / multiple * multiple; };
  size_t index_bytes = 0;
  for (const Part& part : parts) index_bytes += up(24 + part.name.size(), 8);
  size_t at = kHeader + index_bytes + 8;
  Bytes index, body;
  for (const Part& part : parts) {
    const size_t offset = up(at, 64), begin = index.size();
    body.resize(body.size() + offset - at);
    body.insert(body.end(), part.bytes.begin(), part.bytes.end());
    put(&index, uint64_t{offset});
    put(&index, uint64_t{part.bytes.size()});
    put(&index, crc32(part.bytes));
    put(&index, static_cast<uint32_t>(part.name.size()));
    for (const char c : part.name) put(&index, c);
    index.resize(up(index.size() - begin, 8) + begin);
    at = offset + part.bytes.size();
  }
  Bytes kit;
  for (const char c : std::string_view("\x89PNK\r\n\x1a\n")) put(&kit, c);
  put(&kit, uint32_t{1});
  put(&kit, static_cast<uint32_t>(parts.size()));
  put(&kit, uint64_t{at});
  put(&kit, uint64_t{index_bytes});
  kit.insert(kit.end(), index.begin(), index.end());
  kit.resize(kit.size() + 8);
  kit.insert(kit.end(), body.begin(), body.end());
  seal(&kit);
  return kit;
}

const std::vector<float> kInput = {1, 2, 3, 4, 5, 6}, kAnswer = {2, 4, 6, 8, 10, 12};

Bytes bounds(const std::vector<double>& numbers) {
  Bytes bytes;
  for (const double number : numbers) put(&bytes, number);
  return bytes;
}

/// One known answer and one program to time.
std::vector<Part> parts() {
  return {{"answers/double/program", program_bytes()},
          {"answers/double/bounds", bounds({1e-4})},
          {"answers/double/0/in/0", tensor(PNC_F32, {2, 3}, kInput)},
          {"answers/double/0/out/0", tensor(PNC_F32, {2, 3}, kAnswer)},
          {"times/double/program", program_bytes()},
          {"times/double/bounds", bounds({1e-4})},
          {"times/double/0/in/0", tensor(PNC_F32, {2, 3}, kInput)}};
}

void expect_corrupt(const Bytes& kit, const std::string& words) {
  const auto read = read_kit(kit);
  ASSERT_FALSE(read.ok()) << words;
  EXPECT_EQ(read.status().code(), Code::kCorruptFile);
  EXPECT_NE(read.status().message().find(words), std::string::npos) << read.status().message();
  EXPECT_GE(read.status().offset(), 0);
  EXPECT_LE(read.status().offset(), static_cast<int64_t>(kit.size()));
}

/// With one part changed.
template <class F>
void expect_part_corrupt(const char* name, F change, const std::string& words) {
  std::vector<Part> all = parts();
  for (Part& part : all) {
    if (part.name == name) change(part);
  }
  expect_corrupt(pack(all), words);
}

TEST(ReportKit, IsReadAsItWasWritten) {
  const Bytes bytes = pack(parts());
  const auto kit = read_kit(bytes);
  ASSERT_TRUE(kit.ok()) << kit.status().message();
  ASSERT_EQ(kit->programs.size(), 2U);
  const KitProgram& answer = kit->programs[0];
  EXPECT_EQ(answer.name, "double");
  EXPECT_FALSE(answer.timed);
  EXPECT_TRUE(kit->programs[1].timed);
  EXPECT_EQ(answer.bounds, std::vector<double>{1e-4});
  ASSERT_EQ(answer.steps.size(), 1U);
  ASSERT_EQ(answer.steps[0].outputs.size(), 1U);
  std::vector<float> read(6);
  std::memcpy(read.data(), answer.steps[0].outputs[0].data, 24);
  EXPECT_EQ(read, kAnswer);
  EXPECT_TRUE(kit->programs[1].steps[0].outputs.empty());
  EXPECT_EQ(crc32(std::as_bytes(std::span("123456789", 9))), 0xcbf43926U);  // the value that lists of checksums give
}

TEST(ReportKit, EveryTruncationIsRefused) {
  const Bytes whole = pack(parts());
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));  // no byte behind it may be read
    const auto read = read_kit(cut);
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.status().code(), Code::kCorruptFile) << size;
  }
}

TEST(ReportKit, EveryFlippedByteIsRefused) {
  const Bytes whole = pack(parts());
  const size_t end = index_end(whole) + 4;
  for (size_t at = 0; at < end; ++at) {
    for (const int bit : {0, 7}) {
      Bytes changed = whole;
      changed[at] ^= std::byte(1 << bit);
      const auto read = read_kit(changed);
      ASSERT_FALSE(read.ok()) << at;
      EXPECT_TRUE(read.status().code() == Code::kCorruptFile || at / 4 == 2) << at;  // the version may be newer
    }
  }
  Bytes changed = whole;
  changed[changed.size() - 1] ^= std::byte{1};
  expect_corrupt(changed, "does not have its checksum");
}

/// Someone who changes a kit gives it its checksum too.
TEST(ReportKit, EveryByteOfTheIndexMayLie) {
  const Bytes whole = pack(parts());
  const size_t end = index_end(whole);
  size_t read_all_the_same = 0;
  for (size_t at = 8; at < end; ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      Bytes changed = whole;
      changed[at] = static_cast<std::byte>(value);
      if (index_end(changed) <= changed.size() - 4 && index_end(changed) >= kHeader) seal(&changed);
      const auto read = read_kit(changed);
      read_all_the_same += read.ok();
      EXPECT_TRUE(read.ok() || !read.status().message().empty());
    }
  }
  EXPECT_GT(read_all_the_same, 0U);  // those that changed nothing, and letters of a name in all its places alike
}

TEST(ReportKit, RangesThatDoNotFit) {
  const Bytes whole = pack(parts());
  const auto changed = [&](size_t at, auto value) {
    Bytes kit = whole;
    set(&kit, at, value);
    seal(&kit);
    return kit;
  };
  uint64_t first = 0;
  std::memcpy(&first, whole.data() + kHeader, sizeof first);
  expect_corrupt(changed(kHeader, first + 8), "no multiple of 64");
  expect_corrupt(changed(kHeader, ~uint64_t{63}), "the file has");
  expect_corrupt(changed(kHeader + 8, ~uint64_t{0}), "the file has");
  expect_corrupt(changed(kHeader + 8, uint64_t{0} - first), "the file has");  // offset + bytes is 2^64
  expect_corrupt(changed(kHeader, uint64_t{0}), "inside of what ends at");
  const size_t second = kHeader + 48;  // "answers/double/program" has 22 bytes
  expect_corrupt(changed(second, first), "inside of what ends at");
  expect_corrupt(changed(kHeader + 20, uint32_t{0}), "a name of 0 bytes");
  expect_corrupt(changed(kHeader + 20, ~uint32_t{0}), "a name of 4294967295 bytes");
  expect_corrupt(changed(12, uint32_t{8}), "the index ends in entry 7");
  expect_corrupt(changed(12, uint32_t{6}), "behind its last entry");
  expect_corrupt(changed(16, uint64_t{0}), "is said to have 0 bytes");
  Bytes kit = whole;
  set(&kit, 24, ~uint64_t{0});
  expect_corrupt(kit, "an index of 18446744073709551615 bytes");
  kit = whole;
  kit[1] = std::byte{'X'};
  expect_corrupt(kit, "no kit");
  const auto newer = read_kit(changed(8, uint32_t{2}));
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.status().code(), Code::kUnsupported);
}

TEST(ReportKit, NamesThatAreNone) {
  const auto renamed = [](size_t i, const std::string& name) {
    std::vector<Part> all = parts();
    all[i].name = name;
    return pack(all);
  };
  expect_corrupt(renamed(3, "answers/double/0/in/0"), "there are two ranges 'answers/double/0/in/0'");
  for (const char* bad :
       {"../double/0/in/0", "/answers/double/program", "answers//program", "a\x1b[2J", "a b", "answers/"}) {
    const std::string name = bad;
    expect_corrupt(renamed(2, name), name.starts_with("..") ? "does not know" : "is none of a range");
  }
  for (const char* unknown :
       {"answers/double/x", "other/double/program", "answers/double/0/in/x", "answers/double/00/in/0",
        "answers/double/0/on/0", "answers/double/99999/in/0", "answers"}) {
    expect_corrupt(renamed(2, unknown), "does not know");
  }
  expect_corrupt(renamed(0, "answers/other/program"), "'answers/other/program' has 1 inputs, step 0 has tensors for 0");
  expect_corrupt(renamed(1, "answers/other/bounds"), "'answers/double/program' has no bounds beside it");
  expect_corrupt(renamed(0, "answers/double/0/in/1"), "there is no range 'answers/double/program'");
  expect_corrupt(renamed(2, "answers/double/0/in/1"), "has no neighbour 0");
  expect_corrupt(renamed(2, "answers/double/2/in/0"), "has 1 inputs, step 0 has tensors for 0");
  std::vector<Part> more = parts();
  more.push_back({"times/double/0/out/0", tensor(PNC_F32, {2, 3}, kAnswer)});
  expect_corrupt(pack(more), "is only timed, and has 1 steps and 1 answers");
}

TEST(ReportKit, TensorsThatTheProgramDoesNotTake) {
  const char* input = "answers/double/0/in/0";
  const auto changed = [&](size_t at, auto value, const std::string& words) {
    expect_part_corrupt(input, [&](Part& part) { set(&part.bytes, at, value); }, words);
  };
  changed(0, uint32_t{99}, "elements of type 99");
  changed(0, uint32_t{PNC_I32}, "is int32[2,3], the program takes and gives float32[2,3]");
  changed(0, uint32_t{PNC_F64}, "has 6 elements of 64 bits in 24 bytes");
  changed(4, uint32_t{33}, "has rank 33");
  changed(8, int64_t{-1}, "has a size of -1");
  changed(8, int64_t{3}, "has 9 elements of 32 bits in 24 bytes");
  changed(8, int64_t{1} << 62, "has 13835058055282163712 elements");  // their bits are beyond 64 bits
  changed(8, int64_t{0x5555555555555558}, "has a size of 3");         // times 3 is 8 beyond 2^64
  expect_part_corrupt(input, [](Part& part) { part.bytes.resize(5); }, "is no tensor");
  expect_part_corrupt(
      input, [](Part& p) { p.bytes = tensor(PNC_F32, {3, 2}, kInput); }, "is float32[3,2], the program");
  expect_part_corrupt(input, [](Part& p) { p.bytes = tensor(PNC_F32, {6}, kInput); }, "is float32[6], the program");
  const char* bound = "answers/double/bounds";
  expect_part_corrupt(bound, [](Part& p) { p.bytes = bounds({NAN}); }, "not in [0, 1)");
  expect_part_corrupt(bound, [](Part& p) { p.bytes = bounds({1}); }, "not in [0, 1)");
  expect_part_corrupt(bound, [](Part& p) { p.bytes = bounds({0, 0}); }, "16 bytes for 1 outputs");
  const char* program = "answers/double/program";
  expect_part_corrupt(program, [](Part& p) { p.bytes[p.bytes.size() / 2] ^= std::byte{1}; }, "is damaged: ");
  expect_part_corrupt(program, [](Part& p) { p.bytes.clear(); }, "is damaged: ");
}

/// The page of a kit on the CPU.
Page page_of(const std::vector<Part>& all, double seconds = 30) {
  const auto page = run_report(pack(all), {{"cpu"}, seconds});
  EXPECT_TRUE(page.ok()) << page.status().message();
  return page.ok() ? *page : Page();
}

bool says(const Page& page, const std::string& words) {
  return page.text.find(words) != std::string::npos;
}

TEST(Report, EqualAnswersAndTimes) {
  const Page page = page_of(parts());
  EXPECT_EQ(page.differs + page.refused + page.failed + page.left_out, 0);
  EXPECT_GE(page.equal, 2);
  EXPECT_TRUE(says(page, "\"format\": \"pinnace device report\"")) << page.text;
  EXPECT_TRUE(says(page, "\"median_ms\": "));
  EXPECT_FALSE(says(page, "\"median_ms\": null"));
  EXPECT_TRUE(says(page, "\"cpu_per_wall\": "));
}

TEST(Report, APlantedWrongAnswerDiffersWithItsPlaceAndSize) {
  std::vector<Part> all = parts();
  std::vector<float> wrong = kAnswer;
  wrong[4] = 10.5F;
  all[3].bytes = tensor(PNC_F32, {2, 3}, wrong);
  const Page page = page_of(all);
  EXPECT_GE(page.differs, 1);
  EXPECT_TRUE(says(page, "\"result\": \"differs\"")) << page.text;
  EXPECT_TRUE(says(page, "\"output\": \"double\""));
  EXPECT_TRUE(says(page, "\"element\": [1, 1]"));
  EXPECT_TRUE(says(page, "\"got\": 10,"));
  EXPECT_TRUE(says(page, "\"wanted\": 10.5,"));
  EXPECT_TRUE(says(page, "\"error\": 0.5,"));
}

TEST(Report, WhatTheBudgetDoesNotReachIsListed) {
  const Page page = page_of(parts(), 1e-9);
  EXPECT_EQ(page.equal, 0);
  EXPECT_GE(page.left_out, 2);
  EXPECT_TRUE(says(page, "\"why\": \"the time is used up\"")) << page.text;
}

TEST(Report, WrongUse) {
  const Bytes kit = pack(parts());
  for (const Options& options : {Options{{"cpu", "tpu"}, 1}, Options{{}, 0}, Options{{}, -1}, Options{{}, NAN}}) {
    const auto page = run_report(kit, options);
    ASSERT_FALSE(page.ok());
    EXPECT_EQ(page.status().code(), Code::kInvalidArgument) << page.status().message();
  }
  EXPECT_EQ(read_kit_file("/").status().code(), Code::kFile);
  EXPECT_EQ(read_kit_file("/nothing/there.pnk").status().code(), Code::kFile);
}

TEST(Report, ATargetThatCannotCreateASessionFailsAloneInThePage) {
  const auto page = run_report(pack(parts()), {{"cpu:no_such_set", "cpu"}, 30});
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_GE(page->failed, 2);
  EXPECT_GE(page->equal, 2);
}

TEST(Report, ACallerEndsItByItsOwnScope) {
  pnc_cancel_scope* scope = nullptr;
  ASSERT_EQ(pnc_cancel_scope_enter_poll([](void*) { return true; }, nullptr, &scope), PNC_OK);
  const auto page = run_report(pack(parts()), {{"cpu"}, 30});
  pnc_cancel_scope_leave(scope);
  EXPECT_TRUE(page.ok() || page.status().code() == Code::kCancelled) << page.status().message();
}

Difference judged(std::vector<float> got, std::vector<float> wanted, std::vector<int64_t> shape, double bound = 1e-4) {
  const auto view = [&](std::vector<float>& array) {
    pnc_tensor made{array.data(), array.size() * 4, PNC_F32, static_cast<int32_t>(shape.size()), {}};
    std::copy(shape.begin(), shape.end(), made.shape);
    return made;
  };
  return judge(view(got), view(wanted), bound);
}

TEST(ReportJudge, TheWholeAndItsSlices) {
  std::vector<float> wanted(200, 1.0F), got = wanted;
  EXPECT_TRUE(judged(got, wanted, {10, 20}).equal);
  got[7] = 1.00005F;
  EXPECT_TRUE(judged(got, wanted, {10, 20}).equal);
  got[47] = 1.001F;
  const Difference whole = judged(got, wanted, {10, 20});
  EXPECT_FALSE(whole.equal);
  EXPECT_EQ(whole.element, (std::vector<int64_t>{2, 7}));
  EXPECT_NEAR(whole.largest, 1e-3, 1e-6);
  // Row 3 is small, and 1 % off: 1e-5 of the whole, ten times the bound of a slice.
  for (size_t i = 60; i < 80; ++i) {
    wanted[i] = 1e-3F;
    got[i] = 1.01e-3F;
  }
  got[47] = 1;
  const Difference slice = judged(got, wanted, {10, 20});
  EXPECT_FALSE(slice.equal);
  EXPECT_NE(slice.why.find("axis 0 index 3"), std::string::npos) << slice.why;
  EXPECT_EQ(slice.element[0], 3);
  EXPECT_FALSE(judged({1, 2e-3F}, {1, 2.01e-3F}, {2}).equal);  // of few elements each is a slice
}

TEST(ReportJudge, NonFiniteValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(judged({nan, inf, -inf, 1}, {nan, inf, -inf, 1}, {4}).equal);
  for (const float other : {1.0F, -inf, nan}) {
    const Difference found = judged({1, other}, {1, inf}, {2});
    EXPECT_FALSE(found.equal);
    EXPECT_EQ(found.element, std::vector<int64_t>{1});
    EXPECT_TRUE(std::isinf(found.largest));
  }
}

TEST(ReportJudge, IntegersAndHalves) {
  int64_t a[] = {1, std::numeric_limits<int64_t>::max()}, b[] = {1, std::numeric_limits<int64_t>::max() - 1};
  const auto view = [](void* data, pnc_dtype dtype, size_t bytes) { return pnc_tensor{data, bytes, dtype, 1, {2}}; };
  EXPECT_TRUE(judge(view(a, PNC_I64, 16), view(a, PNC_I64, 16), 0).equal);
  const Difference one = judge(view(a, PNC_I64, 16), view(b, PNC_I64, 16), 0);
  EXPECT_FALSE(one.equal);
  EXPECT_EQ(one.largest, 1);  // which doubles of that size do not show
  EXPECT_EQ(one.element, std::vector<int64_t>{1});
  uint16_t half[] = {0x3c00, 0xc000}, near[] = {0x3c01, 0xc000};  // 1 and -2; 1 + 2^-10
  EXPECT_TRUE(judge(view(near, PNC_F16, 4), view(half, PNC_F16, 4), 5e-3).equal);
  EXPECT_NEAR(judge(view(near, PNC_F16, 4), view(half, PNC_F16, 4), 5e-3).largest, 0x1p-10, 1e-12);
  EXPECT_FALSE(judge(view(near, PNC_F16, 4), view(half, PNC_F16, 4), 1e-5).equal);
  EXPECT_FALSE(judge(view(near, PNC_BF16, 4), view(half, PNC_F16, 4), 1).equal);
  EXPECT_TRUE(judge({nullptr, 0, PNC_F32, 2, {0, 3}}, {nullptr, 0, PNC_F32, 2, {0, 3}}, 0).equal);
}

TEST(ReportJson, TextsAndNumbers) {
  Json json;
  json.object().pair("a\n\"b\\", "\x1b[2J\x7f \xc3\xa9 \xff\xc0\x80\xed\xa0\x80 \xf0\x9f\x9a\xa2");
  json.pair("numbers", 0.25).pair("nan", std::numeric_limits<double>::quiet_NaN()).pair("inf", HUGE_VAL);
  json.pair("yes", true).key("list").list().value(int64_t{-3}).null().end().key("none").object().end().end();
  const std::string text = std::move(json).take();
  EXPECT_EQ(text,
            "{\n \"a\\u000a\\\"b\\\\\": \"\\u001b[2J\\u007f \xc3\xa9 \\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd "
            "\xf0\x9f\x9a\xa2\",\n \"numbers\": 0.25,\n \"nan\": null,\n \"inf\": null,\n \"yes\": true,\n"
            " \"list\": [-3, null],\n \"none\": {}}\n");
}

}  // namespace
}  // namespace pinnace::report
