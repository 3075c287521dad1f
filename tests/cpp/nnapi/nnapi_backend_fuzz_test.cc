// Fuzz of the NNAPI back end: random operators at random levels, alone or as the branches of an if, with whatever
// inputs are values of the run, and positions that point anywhere. What is taken gives the reference's numbers; what is
// not says why. PINNACE_TEST_SEED and PINNACE_FUZZ_SECONDS as in nnapi_fuzz_test.cc.
#include <gtest/gtest.h>

#include <chrono>

#include "cpp/counted_memory.h"
#include "cpp/nnapi/nnapi_node.h"
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

constexpr size_t kLimitBytes = 64 << 20;  // sizes that point anywhere ask for more than a machine has

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* value = std::getenv(variable);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

/// The node in both branches of an `if` that gets all its inputs.
struct Branches {
  Graph graph;
  Node* node;
  explicit Branches(const NodeView& view, std::span<const TensorView> in, std::span<const TensorType* const> outputs) {
    std::vector<ValueId> ins = {graph.add_value("condition", {DType::kBool, {}, nullptr})}, outs;
    for (const TensorView& v : in) {
      if (v.present()) ins.push_back(graph.add_value("in", *v.type));
    }
    for (const TensorType* type : outputs) outs.push_back(graph.add_value("out", *type));
    node = graph.add_node("if", 1, "either", ins, outs);
    for (const char* name : {"else_branch", "then_branch"}) {
      auto body = std::make_shared<Graph>();
      std::vector<ValueId> inner, made;
      for (const TensorView& v : in) inner.push_back(v.present() ? body->add_input("in", *v.type) : kNoValue);
      for (const TensorType* type : outputs) made.push_back(body->add_value("out", *type));
      Node* copy = body->add_node(view.node().op, view.node().version, "inner", inner, made);
      copy->attrs = view.node().attrs;
      for (ValueId id : made) body->add_output("out", id);
      node->set_attr(name, std::move(body));
    }
  }
};

TEST(NnapiFuzz, BackEnd) {
  const uint64_t seed = number_of("PINNACE_TEST_SEED", 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number_of("PINNACE_FUZZ_SECONDS", 2));
  const auto families = random_families();
  int ran = 0, refused = 0;
  for (uint64_t round = 0; round < 30 || std::chrono::steady_clock::now() < end; ++round) {
    Random random(static_cast<uint32_t>(seed * 1'000'003 + round));
    Draw draw{random};
    const RandomCase drawn =
        families[static_cast<size_t>(draw.integer(0, static_cast<int64_t>(families.size()) - 1))].second(draw);
    const Case source{.inputs = drawn.inputs.c_str(),
                      .attributes = drawn.attributes.c_str(),
                      .outputs = drawn.outputs,
                      .tolerance = drawn.tolerance,
                      .output_quantization = drawn.quantization.c_str()};
    const auto built = build_case(drawn.op.c_str(), source, static_cast<uint32_t>(seed + round));
    ASSERT_TRUE(built.ok()) << built.status().message();
    bool tame = true, wide = false;
    for (const TensorView& v : built->input_views()) tame &= all_tame(v) && (!v.present() || v.elements() > 0);
    const bool odd = draw.once_in(4);  // positions that point anywhere: any status will do
    for (const TensorView& v : built->input_views()) {
      if (!odd || !v.present() || v.dtype() != DType::kI64) continue;
      for (int64_t i = 0; i < v.elements(); ++i) v.data<int64_t>()[i] = draw.integer(-5, 40) << draw.integer(0, 40);
    }
    for (const TensorView& v : built->input_views()) wide |= exceeds_32_bits(v);  // made again elsewhere
    const int level = static_cast<int>(draw.integer(1, 8));
    const auto values = static_cast<uint32_t>(draw.integer(0, 31)) << 1 | 1;  // of constants alone nothing is asked
    const bool inside = draw.once_in(3);
    uint8_t condition = draw.once_in(2);
    const TensorType flag{DType::kBool, {}, nullptr};
    const MemoryWatch watch(kLimitBytes);
    const auto reference = run_case(*built);
    const auto got = run_case_with(
        [&](const NodeView& view, std::span<const TensorView> in, std::span<const TensorView> out) {
          if (!inside) return run_on_nnapi(nnapi_level(level), values, view, in, out);
          std::vector<const TensorType*> outputs;
          for (const TensorView& v : out) outputs.push_back(v.type);
          Branches both(view, in, outputs);
          std::vector<TensorView> inputs = {{&flag, reinterpret_cast<std::byte*>(&condition)}};
          for (const TensorView& v : in) {
            if (v.present()) inputs.push_back(v);
          }
          std::vector<const TensorType*> types;
          for (const TensorView& v : inputs) types.push_back(v.type);
          const NodeView around(*both.node, *find_op("if"), types, {}, outputs);
          return run_on_nnapi(nnapi_level(level), values, around, inputs, out);
        },
        *built);
    const std::string where =
        str_cat("seed ", seed, ", round ", round, ": ", drawn.op, " (", drawn.inputs.substr(0, 300), " | ",
                drawn.attributes, ") at level ", level, inside ? ", inside an if" : "");
    if (!got.ok()) {
      ++refused;
      EXPECT_FALSE(got.status().message().empty()) << where;
      EXPECT_TRUE(got.status().code() != Code::kUnsupported || !got.status().rule().empty()) << where;
      EXPECT_TRUE(odd || !reference.ok() || got.status().code() == Code::kUnsupported ||
                  (wide && got.status().code() == Code::kDeviceLost) ||
                  (watch.refused() > 0 && got.status().code() == Code::kDeviceLost))
          << where << ": " << got.status().message();
    } else if (reference.ok() && tame) {
      ++ran;
      for (size_t i = 0; i < got->size(); ++i) {
        const TensorView want{&(*reference)[i].type, const_cast<std::byte*>((*reference)[i].bytes.data())};
        const TensorView is{&(*got)[i].type, const_cast<std::byte*>((*got)[i].bytes.data())};
        EXPECT_EQ(far_from(want, is, drawn.tolerance), "") << where << ", output " << i;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(ran + refused, 5);
}

}  // namespace
}  // namespace pinnace::testing
