// One node as shape rule and reference code are asked about it, made of a case and then changed: the parity test forgets
// what is known, the bad-model tests put in what should not be there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "base/status.h"
#include "cases/run_case.h"

namespace pinnace::testing {

/// What type inference is given: types and contents that a test can change.
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

  Result<std::vector<TensorType>> infer_types() const {
    std::vector<const TensorType*> pointers;
    std::vector<const void*> contents;
    for (size_t i = 0; i < types.size(); ++i) {
      pointers.push_back(present[i] ? &types[i] : nullptr);
      contents.push_back(present[i] && data[i] ? data[i]->data() : nullptr);
    }
    return infer_node_types(NodeView(node, *op, pointers, contents, declared));
  }

  /// A refusal says which node it is about and why; nothing outside a tensor's memory was touched.
  void expect_typed(const Status& status) const {
    EXPECT_TRUE(status.code() == Code::kInvalidArgument || status.code() == Code::kUnsupported ||
                status.code() == Code::kOutOfMemory)
        << code_name(status.code()) << ": " << status.message();
    EXPECT_EQ(status.message().find("memory:"), std::string::npos) << status.message();
    const std::string label = str_cat(node.op, " '", node.name, "'");
    if (status.code() == Code::kOutOfMemory) return;  // names what the memory was for
    EXPECT_NE(status.message().find(label), std::string::npos) << "does not name " << label << ": " << status.message();
    EXPECT_GT(status.message().size(), label.size() + 8) << status.message();
  }
  void expect_refused(const std::string& what) const {
    const auto inferred = infer_types();
    EXPECT_FALSE(inferred.ok()) << what << " is accepted";
    if (inferred.ok()) return;
    EXPECT_EQ(inferred.status().code(), Code::kInvalidArgument) << what << ": " << inferred.status().message();
    expect_typed(inferred.status());
  }
};

}  // namespace pinnace::testing
