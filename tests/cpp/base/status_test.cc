// Status, Result and the sentences they hold: shared failures, values that live as long as their Result, failures that
// are taken out, and every kind of part that a sentence can have.
#include "base/status.h"

#include <pinnace/tensor.h>

#include <gtest/gtest.h>

namespace pinnace {
namespace {
/// Counts those that live.
struct Counted {
  static inline int live = 0;
  int number = 0;
  explicit Counted(int n) : number(n) { ++live; }
  Counted(const Counted& other) : number(other.number) { ++live; }
  Counted(Counted&& other) noexcept : number(std::exchange(other.number, -1)) { ++live; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) = default;
  ~Counted() { --live; }
};

TEST(Status, CopiesShareTheFailure) {
  Status status = invalid("one");
  const Status copy = status;
  status.with_offset(7).with_rule("F-1");
  EXPECT_EQ(copy.offset(), 7);
  EXPECT_EQ(copy.rule(), "F-1");
  const Status moved = std::move(status);
  EXPECT_EQ(moved.message(), "one");
  EXPECT_EQ(&moved.message(), &copy.message());
}

TEST(Status, AssignsOverAndToItself) {
  Status status = invalid("one");
  const Status& itself = status;
  status = itself;
  EXPECT_EQ(status.message(), "one");
  Status& alias = status;
  status = std::move(alias);
  EXPECT_EQ(status.message(), "one");
  status = unsupported("two");
  EXPECT_EQ(status.code(), Code::kUnsupported);
  status = Status();
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.offset(), -1);
}

TEST(Status, PrefixIsOfTheCopyAlone) {
  const Status status = invalid("one");
  const Status longer = status.with_prefix("in the hall: ");
  EXPECT_EQ(status.message(), "one");
  EXPECT_EQ(longer.message(), "in the hall: one");
  EXPECT_EQ(longer.code(), Code::kInvalidArgument);
  EXPECT_TRUE(Status().with_prefix("x").ok());
}

TEST(Status, NoMemoryIsOneForAllAndStaysAsItIs) {
  Status status = Status::no_memory();
  const std::string text = status.message();
  const Status prefixed = status.with_prefix("x");
  status.with_offset(3).with_rule("F-2").with_nodes({{}});
  for (const Status& s : {Status::no_memory(), status, prefixed}) {
    EXPECT_EQ(s.code(), Code::kOutOfMemory);
    EXPECT_EQ(s.message(), text);
    EXPECT_EQ(s.offset(), -1);
    EXPECT_EQ(s.rule(), "");
    EXPECT_TRUE(s.nodes().empty());
  }
}

TEST(Result, HoldsItsValueAsLongAsItLives) {
  ASSERT_EQ(Counted::live, 0);
  {
    Result<Counted> a = Counted(1);
    const Result<Counted> b = a;
    EXPECT_EQ(b->number, 1);
    Result<Counted> c = std::move(a);
    EXPECT_EQ(c->number, 1);
    EXPECT_TRUE(a.ok());  // NOLINT: moved from, and still a value
    c = Result<Counted>(invalid("gone"));
    EXPECT_FALSE(c.ok());
    c = b;
    EXPECT_EQ((*c).number, 1);
    const Counted taken = *std::move(c);
    EXPECT_EQ(taken.number, 1);
    EXPECT_TRUE(b.status().ok());
  }
  EXPECT_EQ(Counted::live, 0);
}

TEST(Result, GivesItsFailureAwayOnce) {
  {
    Result<Counted> a = invalid("one");
    const Result<Counted> b = a;
    const Status status = std::move(a).status();
    EXPECT_EQ(status.message(), "one");
    EXPECT_FALSE(a.ok());  // NOLINT: there is no value either
    a = Counted(2);
    EXPECT_EQ(a->number, 2);
    EXPECT_TRUE(std::move(a).status().ok());
    EXPECT_EQ(a->number, 2);  // NOLINT: a value is not taken out by asking for a failure
    EXPECT_EQ(b.status().message(), "one");
    Result<Counted> c = invalid("two");
    const Result<Counted> d = std::move(c);
    EXPECT_EQ(d.status().message(), "two");
  }
  EXPECT_EQ(Counted::live, 0);
}

Result<std::unique_ptr<int>> half(int number) {
  if (number % 2) return invalid(number, " is odd");
  return std::make_unique<int>(number / 2);
}

Result<std::string> quarter(int number) {
  PINNACE_ASSIGN(const auto once, half(number));
  PINNACE_ASSIGN(const auto twice, half(*once));
  return str_cat(*twice);
}

TEST(Result, PassesOnThroughCallers) {
  EXPECT_EQ(*quarter(12), "3");
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
}

TEST(Sentences, HaveEveryKindOfPart) {
  const std::string text = "text";
  const std::string_view view = "a view, and more";
  char letters[8] = "buffer";
  EXPECT_EQ(str_cat("", text, ' ', view.substr(0, 6), " ", letters, " ", static_cast<const char*>(letters)),
            "text a view buffer buffer");
  EXPECT_EQ(str_cat(true, false, ' ', INT64_MIN, ' ', UINT64_MAX, ' ', int8_t{-7}, ' ', uint8_t{200}),
            "truefalse -9223372036854775808 18446744073709551615 -7 200");
  EXPECT_EQ(str_cat(0.1f, ' ', 0.1, ' ', 1e300, ' ', float{1} / 3), "0.1 0.1 1e+300 0.33333334");
  EXPECT_EQ(str_cat(TensorType{DType::kF32, {2, Dim()}, nullptr}), "float32[2,?]");
  EXPECT_EQ(str_cat(std::string("with\0zero", 9)).size(), 9u);
  std::string to = "to ";
  append_text(to, 5);
  append_text(to, 'x');
  append_text(to, std::string(40, 'y'));
  EXPECT_EQ(to, "to 5x" + std::string(40, 'y'));
  EXPECT_EQ(hex(0x1f40), "0x1f40");
}
}  // namespace
}  // namespace pinnace
