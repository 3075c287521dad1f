// Every case of every operator through its shape rule and its reference code, and from each case what a hostile or
// unlucky caller would make of it. One test per operator; failures name the case by its place and its reason.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/status.h"
#include "cases/run_case.h"

namespace pinnace::testing {

void PrintTo(const CaseList& list, std::ostream* out) {
  *out << list.cases.size() << " cases of " << list.op;
}

namespace {

/// What inference is given: types and contents that a test can change.
struct Question {
  Node node;
  const OpDef* op;
  std::vector<TensorType> types;
  std::vector<bool> present;
  std::vector<ConstantPtr> data;
  std::vector<const TensorType*> declared;

  explicit Question(const BuiltCase& built) : node(built.node()), op(built.op), declared(built.declared()) {
    for (const CaseTensor& t : built.inputs) {
      types.push_back(t.type);
      present.push_back(t.present);
      data.push_back(t.bytes);
    }
  }
  void forget_contents() { std::fill(data.begin(), data.end(), nullptr); }

  Result<std::vector<TensorType>> infer() const {
    std::vector<const TensorType*> pointers;
    std::vector<const void*> contents;
    for (size_t i = 0; i < types.size(); ++i) {
      pointers.push_back(present[i] ? &types[i] : nullptr);
      contents.push_back(present[i] && data[i] ? data[i]->data() : nullptr);
    }
    return infer_node(NodeView(node, *op, pointers, contents, declared));
  }

  /// Infers, and runs the reference where the shape rule lets it and the result is small. Any answer will do, as long
  /// as it is one: a typed error or outputs in their own memory.
  void survive(const std::string& what, bool run = true) const {
    SCOPED_TRACE(what);
    const auto inferred = infer();
    if (!inferred.ok()) {
      expect_typed(inferred.status());
      return;
    }
    if (!run || !op->reference) return;
    std::vector<TensorView> views;
    for (size_t i = 0; i < types.size(); ++i) {
      if (present[i] && !data[i]) return;
      views.push_back(present[i] ? TensorView{&types[i], const_cast<std::byte*>(data[i]->data())} : TensorView{});
    }
    for (const TensorType& type : *inferred) {
      if (!type.concrete() || type.bytes() > 1 << 20) return;
    }
    const auto outputs = run_node_with(op->reference, node, *op, views, declared);
    if (!outputs.ok()) expect_typed(outputs.status());
  }

  static void expect_typed(const Status& status) {
    EXPECT_TRUE(status.code() == Code::kInvalidArgument || status.code() == Code::kUnsupported ||
                status.code() == Code::kOutOfMemory)
        << code_name(status.code()) << ": " << status.message();
    EXPECT_EQ(status.message().find("memory:"), std::string::npos) << status.message();
    EXPECT_FALSE(status.message().empty());
  }
  void expect_refused(const std::string& what) const {
    const auto inferred = infer();
    EXPECT_FALSE(inferred.ok()) << what << " is accepted";
    EXPECT_EQ(inferred.status().code(), Code::kInvalidArgument) << what << ": " << inferred.status().message();
  }
};

bool same_bits(const std::vector<ReferenceOutput>& a, const std::vector<ReferenceOutput>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].type == b[i].type) || a[i].bytes.size() != b[i].bytes.size()) return false;
    if (a[i].bytes.size() && std::memcmp(a[i].bytes.data(), b[i].bytes.data(), a[i].bytes.size()) != 0) return false;
  }
  return true;
}

const InputDef& def_of(const OpDef& op, size_t i) {
  return op.inputs[std::min(i, op.inputs.size() - 1)];
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
  Question::expect_typed(status);
  EXPECT_NE(status.message().find(built.expect.error_text), std::string::npos)
      << "the sentence is: " << status.message() << "\nexpected in it: " << built.expect.error_text;
}

/// Where the schema lets the output share an input's memory, it must give the same bits there.
void check_in_place(const BuiltCase& built, const std::vector<ReferenceOutput>& outputs) {
  if (built.op->view) {
    ASSERT_EQ(outputs[0].bytes.size(), built.inputs[0].bytes->bytes()) << "a view changes the number of bytes";
    EXPECT_EQ(std::memcmp(outputs[0].bytes.data(), built.inputs[0].bytes->data(), outputs[0].bytes.size()), 0)
        << "a view changes bytes";
  }
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const CaseTensor& input = built.inputs[i];
    const bool viewed = i == 0 && built.op->view;
    const bool replaced = i < 32 && (built.op->in_place >> i & 1) && input.present &&
                          input.type.dtype == outputs[0].type.dtype && input.type.shape == outputs[0].type.shape;
    if (!viewed && !replaced) continue;
    const auto shared = run_case(built, {.in_place_input = static_cast<int>(i)});
    ASSERT_TRUE(shared.ok()) << "in place of input " << i << ": " << shared.status().message();
    EXPECT_TRUE(same_bits(outputs, *shared)) << "in place of input " << i << " the result differs";
  }
}

// --------------------------------------------------------------------------------------------- shape rule, open sizes

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

void check_open_sizes(const BuiltCase& built, const std::vector<ReferenceOutput>& outputs) {
  if (!built.op->reference) return;  // bodies fix the types of control flow
  const auto open_dims = [](Question& q, bool keep_indices) {
    for (TensorType& type : q.types) {
      // Lengths of shapes, axes and pads decide ranks.
      if (keep_indices && (kIndices >> static_cast<int>(type.dtype) & 1)) continue;
      for (Dim& d : type.shape) d = Dim();
    }
  };
  Question contents(built);
  contents.forget_contents();
  check_compatible(contents.infer(), outputs, {}, "contents unknown");
  Question sizes(built);
  sizes.forget_contents();
  open_dims(sizes, true);
  check_compatible(sizes.infer(), outputs, {}, "sizes and contents unknown");
  open_dims(sizes, false);
  check_compatible(sizes.infer(), outputs, {}, "all sizes and contents unknown");
  Question known(built);
  open_dims(known, true);
  for (size_t i = 0; i < known.types.size(); ++i) {
    if (known.present[i] && !known.types[i].concrete()) known.data[i] = nullptr;
  }
  check_compatible(known.infer(), outputs, {}, "sizes unknown, indices known");
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
  check_compatible(symbols.infer(), outputs, symbol_sizes, "symbols for sizes");
}

// ----------------------------------------------------------------------------------------------- what must be refused

Attr attr_of_kind(AttrKind kind, int64_t number) {
  switch (kind) {
    case AttrKind::kInt:
      return number;
    case AttrKind::kFloat:
      return static_cast<double>(number);
    case AttrKind::kString:
      return std::string("bogus");
    case AttrKind::kInts:
      return std::vector<int64_t>{number};
    case AttrKind::kFloats:
      return std::vector<double>{static_cast<double>(number)};
    case AttrKind::kStrings:
      return std::vector<std::string>{"bogus"};
    case AttrKind::kGraph:
      return std::make_shared<Graph>();
  }
  return number;
}

void check_schema(const BuiltCase& built) {
  const OpDef& op = *built.op;
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const InputDef& def = def_of(op, i);
    if (!built.inputs[i].present) continue;
    if (def.arity != Arity::kOptional) {
      Question q(built);
      q.present[i] = false;
      q.node.inputs[i] = kNoValue;
      q.expect_refused(str_cat("input ", i, " left out"));
    }
    for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
      if (def.types >> dtype & 1) continue;
      Question q(built);
      q.types[i] = {static_cast<DType>(dtype), q.types[i].shape, nullptr};
      q.forget_contents();
      q.expect_refused(str_cat("input ", i, " as ", dtype_name(static_cast<DType>(dtype))));
    }
  }
  for (const AttrDef& def : op.attrs) {
    for (int kind = 0; kind < 7; ++kind) {
      if (static_cast<AttrKind>(kind) == def.kind) continue;
      Question q(built);
      q.node.set_attr(def.name, attr_of_kind(static_cast<AttrKind>(kind), 1));
      q.expect_refused(str_cat("attribute ", def.name, " as ", attr_kind_name(static_cast<AttrKind>(kind))));
    }
    if (!def.required) continue;
    Question q(built);
    q.node.remove_attr(def.name);
    q.expect_refused(str_cat("attribute ", def.name, " missing"));
  }
  Question unknown(built);
  unknown.node.set_attr("no_such_attribute", int64_t{1});
  unknown.expect_refused("an unknown attribute");
  Question outputs(built);
  for (int i = 0; op.max_outputs >= 0 && i <= op.max_outputs; ++i) outputs.node.outputs.push_back(0);
  if (op.max_outputs >= 0) outputs.expect_refused("too many outputs");
}

// ------------------------------------------------------------------------------------------------ what must be
// survived

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void survive_attributes(const BuiltCase& built) {
  constexpr int64_t kNumbers[] = {0, -1, 1, 3, 7, -100, 100};
  constexpr int64_t kExtremes[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, int64_t{1} << 32, -(int64_t{1} << 31)};
  for (const AttrDef& def : built.op->attrs) {
    if (def.kind == AttrKind::kGraph) continue;
    const auto with = [&](Attr value, bool run, const std::string& what) {
      Question q(built);
      q.node.set_attr(def.name, std::move(value));
      q.survive(str_cat("attribute ", def.name, " ", what), run);
    };
    for (const int64_t n : kNumbers) with(attr_of_kind(def.kind, n), true, str_cat("= ", n));
    // Window sizes and the like may make the reference count that far: only the rule is asked.
    for (const int64_t n : kExtremes) with(attr_of_kind(def.kind, n), false, str_cat("= ", n));
    const Attr* given = built.node().attr(def.name);
    if (def.kind == AttrKind::kInts) {
      with(std::vector<int64_t>{}, true, "empty");
      with(std::vector<int64_t>(9, 1), true, "of nine 1");
      for (size_t i = 0; given && i < std::get<std::vector<int64_t>>(*given).size(); ++i) {
        for (const int64_t n : kNumbers) {
          auto list = std::get<std::vector<int64_t>>(*given);
          list[i] = n;
          with(list, true, str_cat("[", i, "] = ", n));
        }
        for (const int64_t n : kExtremes) {
          auto list = std::get<std::vector<int64_t>>(*given);
          list[i] = n;
          with(list, false, str_cat("[", i, "] = ", n));
        }
      }
    } else if (def.kind == AttrKind::kFloat) {
      for (const double d : {-0.0, 1e300, kInfinity, -kInfinity, std::nan("")}) with(d, true, str_cat("= ", d));
    } else if (def.kind == AttrKind::kFloats) {
      with(std::vector<double>{}, true, "empty");
      with(std::vector<double>(9, kInfinity), true, "of nine inf");
    } else if (def.kind == AttrKind::kString) {
      with(std::string(), true, "empty");
      with(std::string("f32"), true, "f32");
    } else if (def.kind == AttrKind::kStrings) {
      with(std::vector<std::string>{}, true, "empty");
    }
  }
}

void survive_shapes(const BuiltCase& built, Random& random) {
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    if (!built.inputs[i].present) continue;
    const auto with = [&](Shape shape, const std::string& what) {
      Question q(built);
      q.types[i].shape = std::move(shape);
      if (q.types[i].bytes() > 1 << 20) return;
      auto contents = random_contents(q.types[i], random);
      ASSERT_TRUE(contents.ok());
      q.data[i] = *contents;
      q.survive(str_cat("input ", i, " ", what));
    };
    const Shape& shape = built.inputs[i].type.shape;
    with({}, "as a scalar");
    with(Shape(1, Dim(0)), "as [0]");
    with(Shape(8, Dim(1)), "of rank 8");
    for (size_t d = 0; d < shape.size(); ++d) {
      for (const int64_t size : {int64_t{0}, int64_t{1}, shape[d].size + 1}) {
        Shape changed = shape;
        changed[d] = size;
        with(std::move(changed), str_cat("with dimension ", d, " = ", size));
      }
    }
    Shape longer = shape, shorter = shape;
    longer.insert(longer.begin(), Dim(2));
    with(std::move(longer), "with one more dimension");
    if (!shorter.empty()) shorter.erase(shorter.begin());
    with(std::move(shorter), "with one dimension less");
  }
}

void survive_contents(const BuiltCase& built) {
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const CaseTensor& input = built.inputs[i];
    if (!input.present || !(kIndices >> static_cast<int>(input.type.dtype) & 1) || !input.bytes->bytes()) continue;
    const bool wide = input.type.dtype == DType::kI64;
    for (const int64_t n :
         {INT64_MIN, INT64_MAX, int64_t{INT32_MIN}, int64_t{INT32_MAX}, int64_t{-1}, int64_t{0}, int64_t{5}}) {
      const int64_t count = input.type.elements();
      for (int64_t at = -1; at < std::min<int64_t>(count, 4); ++at) {  // all elements, then one by one
        auto changed = Constant::copy_of(input.bytes->data(), input.bytes->bytes());
        ASSERT_TRUE(changed.ok());
        auto* bytes = const_cast<std::byte*>((*changed)->data());
        const auto narrow = static_cast<int32_t>(n);
        for (int64_t k = at < 0 ? 0 : at; k < (at < 0 ? count : at + 1); ++k) {
          std::memcpy(bytes + k * (wide ? 8 : 4), wide ? static_cast<const void*>(&n) : &narrow, wide ? 8 : 4);
        }
        Question q(built);
        q.data[i] = *changed;
        q.survive(str_cat("input ", i, at < 0 ? std::string(" all") : str_cat("[", at, "]"), " = ", n));
      }
    }
  }
}

// ----------------------------------------------------------------------------------------------------------- the tests

class Parity : public ::testing::TestWithParam<CaseList> {};

void check_case(const BuiltCase& built, uint64_t seed) {
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
  check_schema(built);
  if (!built.op->reference) return;
  for (size_t i = 0; i < inferred->size(); ++i) EXPECT_TRUE((*inferred)[i] == (*outputs)[i].type);
  check_in_place(built, *outputs);
  check_open_sizes(built, *outputs);
  Random random(seed ^ 0x9e3779b9);
  survive_attributes(built);
  survive_shapes(built, random);
  survive_contents(built);
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
    check_case(*built, case_seed(list.op, i));
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
