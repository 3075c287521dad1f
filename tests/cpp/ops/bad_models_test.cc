// Models that break an operator's schema, made of every case of every operator by one change at a time: a wrong number
// of inputs or outputs, a wrong element type, a missing, unknown or mistyped attribute. Each must be refused by a
// sentence that names the node; what a schema cannot forbid is asked of the shape rule and run
// (hostile_values_test.cc).
#include <gtest/gtest.h>

#include "cases/question.h"

namespace pinnace::testing {

void PrintTo(const CaseList& list, std::ostream* out);

namespace {

const InputDef& def_of(const OpDef& op, size_t i) {
  return op.inputs.begin()[std::min(i, op.inputs.size() - 1)];
}

Attr attr_of_kind(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return int64_t{1};
    case AttrKind::kFloat:
      return 1.0;
    case AttrKind::kString:
      return std::string("bogus");
    case AttrKind::kInts:
      return std::vector<int64_t>{1};
    case AttrKind::kFloats:
      return std::vector<double>{1};
    case AttrKind::kStrings:
      return std::vector<std::string>{"bogus"};
    case AttrKind::kGraph:
      return std::make_shared<Graph>();
  }
  return int64_t{1};
}

/// Inputs from `count` on are taken away.
Question with_inputs(const BuiltCase& built, size_t count) {
  Question q(built);
  q.node.inputs.resize(count);
  q.types.resize(count);
  q.present.resize(count);
  q.data.resize(count);
  return q;
}

void wrong_inputs(const BuiltCase& built) {
  const OpDef& op = *built.op;
  const size_t count = built.inputs.size();
  const bool variadic = op.inputs.size() > 0 && def_of(op, op.inputs.size()).arity == Arity::kVariadic;
  if (!variadic) {
    Question q(built);
    for (size_t i = count; i <= op.inputs.size(); ++i) {
      q.node.inputs.push_back(0);
      q.types.push_back({DType::kF32, {}, nullptr});
      q.present.push_back(true);
      q.data.push_back(nullptr);
    }
    q.expect_refused("one input more than the schema has");
  }
  for (size_t i = 0; i < count; ++i) {
    const InputDef& def = def_of(op, i);
    if (def.arity == Arity::kRequired) {
      with_inputs(built, i).expect_refused(str_cat("only the first ", i, " inputs"));
    }
    if (!built.inputs[i].present) continue;
    if (def.arity != Arity::kOptional) {
      Question q(built);
      q.present[i] = false;
      q.node.inputs[i] = kNoValue;
      q.expect_refused(str_cat("input ", i, " left out"));
    }
    for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
      Question q(built);
      q.types[i] = {static_cast<DType>(dtype), q.types[i].shape, nullptr};
      q.forget_contents();
      bool alone = true;  // no other input fixes the type
      for (size_t k = 0; k < count; ++k) {
        alone &= k == i || !q.present[k] || !def.type_letter || def_of(op, k).type_letter != def.type_letter;
      }
      const std::string what = str_cat("input ", i, " as ", dtype_name(static_cast<DType>(dtype)));
      if (!(def.types >> dtype & 1)) {
        q.expect_refused(what);
      } else if (!alone && static_cast<DType>(dtype) != built.inputs[i].type.dtype) {
        q.expect_refused(what + ", unlike an input of the same letter");
      }
    }
  }
}

void wrong_outputs(const BuiltCase& built) {
  const OpDef& op = *built.op;
  Question q(built);
  const auto with = [&](int count) {
    q.node.outputs.assign(static_cast<size_t>(count), 0);
    q.declared.assign(static_cast<size_t>(count), nullptr);
    q.expect_refused(str_cat(count, " outputs"));
  };
  if (op.min_outputs > 0) with(op.min_outputs - 1);
  if (op.max_outputs >= 0) with(op.max_outputs + 1);
}

void wrong_attributes(const BuiltCase& built) {
  for (const AttrDef& def : built.op->attrs) {
    for (int kind = 0; kind < 7; ++kind) {
      if (static_cast<AttrKind>(kind) == def.kind) continue;
      Question q(built);
      q.node.set_attr(def.name, attr_of_kind(static_cast<AttrKind>(kind)));
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
}

class BadModels : public ::testing::TestWithParam<CaseList> {};

TEST_P(BadModels, AreRefused) {
  const CaseList& list = GetParam();
  for (size_t i = 0; i < list.cases.size(); ++i) {
    SCOPED_TRACE(str_cat(list.op, " case ", i, ": ", list.cases[i].inputs, " ", list.cases[i].attributes));
    const auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
    if (!built.ok() || built->expect.error) continue;
    wrong_inputs(*built);
    wrong_outputs(*built);
    wrong_attributes(*built);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, BadModels, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace pinnace::testing
