// The smallest back end: it takes nodes on float32 and computes nothing, so that outputs are zeros. It shows all that
// the interface asks for, and what a session does beside computing.
#pragma once

#include <cstring>

#include "backends/backend.h"
#include "backends/rule.h"

namespace pinnace::fakes {

class NullExecutable final : public Executable {
 public:
  size_t workspace_bytes() const override { return 0; }
  Status run(const RunContext& context, std::span<const TensorView>,
             std::span<const TensorView> outputs) const override {
    if (context.cancelled()) return stop_status("the null back end");
    for (const TensorView& y : outputs) std::memset(y.bytes, 0, static_cast<size_t>(y.type->bytes()));
    return {};
  }
  std::string_view kernel(size_t) const override { return "nothing"; }
};

class NullBackend final : public Backend {
 public:
  static constexpr RuleInfo kFloat32Only = {"Z-1", "it takes float32 alone", "Every input has to be float32."};

  std::string_view name() const override { return "null"; }
  std::string unavailable(const TargetSpec&) const override { return {}; }
  std::string description() const override { return "computes nothing"; }
  Verdict supports(const NodeView& node, const TargetSpec&) const override {
    for (int i = 0; i < node.input_count(); ++i) {
      if (!node.has_input(i) || node.input(i).dtype == DType::kF32) continue;
      return refusal(kFloat32Only, to_string(node.input(i)));
    }
    return {};
  }
  Result<std::unique_ptr<Executable>> compile(const Segment&, const TargetSpec&) const override {
    return std::unique_ptr<Executable>(std::make_unique<NullExecutable>());
  }
};

}  // namespace pinnace::fakes
