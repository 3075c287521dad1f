// Every case of every operator through its shape rule and its reference code. One test per operator; failures name the
// case by its place and its reason. What a hostile or unlucky caller makes of the same cases: bad_models_test.cc.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/status.h"
#include "cases/question.h"

namespace pinnace::testing {

void PrintTo(const CaseList& list, std::ostream* out) {
  *out << list.cases.size() << " cases of " << list.op;
}

namespace {

bool same_bits(const std::vector<ReferenceOutput>& a, const std::vector<ReferenceOutput>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].type == b[i].type) || a[i].bytes.size() != b[i].bytes.size()) return false;
    if (a[i].bytes.size() && std::memcmp(a[i].bytes.data(), b[i].bytes.data(), a[i].bytes.size()) != 0) return false;
  }
  return true;
}

// ------------------------------------------------------------------------------------------------- what must come out

void check_expectation(const BuiltCase& built, const std::vector<ReferenceOutput>& outputs) {
  if (built.expect.outputs.empty()) return;
  ASSERT_EQ(built.expect.outputs.size(), outputs.size()) << "the case expects another number of outputs";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView got{&outputs[i].type, const_cast<std::byte*>(outputs[i].bytes.data())};
    const std::string sentence = difference(built.expect.outputs[i], got, built.source->tolerance);
    EXPECT_EQ(sentence, "") << "output " << i;
  }
}

void check_error(const BuiltCase& built) {
  auto status = infer_case(built).status();
  if (status.ok()) status = run_case(built).status();
  ASSERT_FALSE(status.ok()) << "expected an error with: " << built.expect.error_text;
  Question(built).expect_typed(status);
  EXPECT_NE(status.message().find(built.expect.error_text), std::string::npos)
      << "the sentence is: " << status.message() << "\nexpected in it: " << built.expect.error_text;
}

/// Where the schema lets the output share an input's memory, it must give the same bits there.
void check_in_place(const BuiltCase& built, const std::vector<ReferenceOutput>& outputs) {
  if (built.op->has(Trait::kView)) {
    ASSERT_EQ(outputs[0].bytes.size(), built.inputs[0].bytes->bytes()) << "a view changes the number of bytes";
    EXPECT_EQ(std::memcmp(outputs[0].bytes.data(), built.inputs[0].bytes->data(), outputs[0].bytes.size()), 0)
        << "a view changes bytes";
  }
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const CaseTensor& input = built.inputs[i];
    const bool viewed = i == 0 && built.op->has(Trait::kView);
    const bool replaced = i < 32 && (built.op->in_place >> i & 1) && input.present &&
                          input.type.dtype == outputs[0].type.dtype && input.type.shape == outputs[0].type.shape;
    if (!viewed && !replaced) continue;
    const auto shared = run_case(built, {.in_place_input = static_cast<int>(i)});
    ASSERT_TRUE(shared.ok()) << "in place of input " << i << ": " << shared.status().message();
    EXPECT_TRUE(same_bits(outputs, *shared)) << "in place of input " << i << " the result differs";
  }
}

// --------------------------------------------------------------------------------------------- shape rule, dynamic
// sizes

/// The result of a rule that knew less must allow what the concrete run gave.
void check_compatible(const Result<std::vector<TensorType>>& open, const std::vector<ReferenceOutput>& outputs,
                      const std::vector<int64_t>& symbol_sizes, const char* what) {
  if (!open.ok()) {
    // A rank cannot be unknown, so a rule may need to know something; then its sentence says what must be known.
    EXPECT_NE(open.status().message().find("known"), std::string::npos) << what << ": " << open.status().message();
    return;
  }
  ASSERT_EQ(open->size(), outputs.size()) << what;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& got = (*open)[i];
    const TensorType& real = outputs[i].type;
    const std::string sentence = str_cat(what, ": output ", i, " is ", to_string(got), ", in truth ", to_string(real));
    ASSERT_EQ(got.dtype, real.dtype) << sentence;
    ASSERT_EQ(got.rank(), real.rank()) << sentence;
    for (size_t d = 0; d < real.shape.size(); ++d) {
      const Dim dim = got.shape[d];
      const int64_t size = real.shape[d].size;
      EXPECT_TRUE(!dim.known() || dim.size == size) << sentence;
      EXPECT_TRUE(dim.max < 0 || dim.max >= size) << sentence;
      if (dim.symbol >= 0) {
        ASSERT_LT(static_cast<size_t>(dim.symbol), symbol_sizes.size()) << sentence;
        EXPECT_EQ(symbol_sizes[static_cast<size_t>(dim.symbol)], size) << sentence;
      }
    }
  }
}

void check_dynamic_sizes(const BuiltCase& built, const std::vector<ReferenceOutput>& outputs) {
  if (!built.op->reference) return;  // bodies fix the types of control flow
  const auto dynamic_dims = [](Question& q, bool keep_indices) {
    for (TensorType& type : q.types) {
      // Lengths of shapes, axes and pads decide ranks.
      if (keep_indices && (kIndices >> static_cast<int>(type.dtype) & 1)) continue;
      for (Dim& d : type.shape) d = Dim();
    }
  };
  Question contents(built);
  contents.forget_contents();
  check_compatible(contents.infer_types(), outputs, {}, "contents unknown");
  Question sizes(built);
  sizes.forget_contents();
  dynamic_dims(sizes, true);
  check_compatible(sizes.infer_types(), outputs, {}, "sizes and contents unknown");
  dynamic_dims(sizes, false);
  check_compatible(sizes.infer_types(), outputs, {}, "all sizes and contents unknown");
  Question known(built);
  dynamic_dims(known, true);
  for (size_t i = 0; i < known.types.size(); ++i) {
    if (known.present[i] && !known.types[i].concrete()) known.data[i] = nullptr;
  }
  check_compatible(known.infer_types(), outputs, {}, "sizes unknown, indices known");
  // The same size becomes the same symbol, and those below 2 stay: 1 decides broadcasting.
  Question symbols(built);
  std::vector<int64_t> symbol_sizes;
  for (size_t i = 0; i < symbols.types.size(); ++i) {
    if (kIndices >> static_cast<int>(symbols.types[i].dtype) & 1) continue;
    for (Dim& d : symbols.types[i].shape) {
      if (d.size < 2) continue;
      const auto at = std::find(symbol_sizes.begin(), symbol_sizes.end(), d.size);
      const auto index = static_cast<int32_t>(at - symbol_sizes.begin());
      if (at == symbol_sizes.end()) symbol_sizes.push_back(d.size);
      d = Dim::of_symbol(index);
      symbols.data[i] = nullptr;
    }
  }
  check_compatible(symbols.infer_types(), outputs, symbol_sizes, "symbols for sizes");
}

// ----------------------------------------------------------------------------------------------------------- the tests

class Parity : public ::testing::TestWithParam<CaseList> {};

void check_case(const BuiltCase& built) {
  if (built.expect.error) {
    check_error(built);
    return;
  }
  const auto inferred = infer_case(built);
  ASSERT_TRUE(inferred.ok()) << inferred.status().message();
  const auto outputs = run_case(built);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  check_expectation(built, *outputs);
  const auto again = run_case(built, {.poison = 0x55});
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(same_bits(*outputs, *again)) << "two runs differ: an output is not written in full";
  if (!built.op->reference) return;
  for (size_t i = 0; i < inferred->size(); ++i) EXPECT_TRUE((*inferred)[i] == (*outputs)[i].type);
  check_in_place(built, *outputs);
  check_dynamic_sizes(built, *outputs);
}

TEST_P(Parity, Reference) {
  const CaseList& list = GetParam();
  ASSERT_FALSE(list.cases.empty());
  for (size_t i = 0; i < list.cases.size(); ++i) {
    const Case& source = list.cases[i];
    SCOPED_TRACE(str_cat(list.op, " case ", i, ": ", source.why, " (", source.inputs, *source.attributes ? "; " : "",
                         source.attributes, "), seed ", test_seed()));
    const auto built = build_case(list.op, source, case_seed(list.op, i));
    if (!built.ok()) {
      ADD_FAILURE() << "the case cannot be read: " << built.status().message();
      continue;
    }
    check_case(*built);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Parity, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return std::string(info.param.op); });

TEST(Operators, AreSortedByName) {
  const auto ops = all_ops();
  for (size_t i = 1; i < ops.size(); ++i) EXPECT_LT(ops[i - 1]->name, ops[i]->name);
}

}  // namespace
}  // namespace pinnace::testing
