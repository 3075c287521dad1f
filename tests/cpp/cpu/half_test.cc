// 16-bit floats on the CPU: conversions of every instruction set against base/half.h, and nodes of f16 and bf16 as a
// session runs them, against the reference code.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/cast/half_f32.h"
#include "backends/packed_constants.h"
#include "base/half.h"
#include "cpp/cpu/kernel_line.h"
#include "cpp/cpu/quantized_contract.h"
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

struct Conversions {
  Cpu needs;
  const HalfF32Kernels* kernels;
};
constexpr Conversions kConversions[] = {
    {Cpu::generic, &half_f32_kernels_generic},
#if defined(__x86_64__)
    {Cpu::avx2, &half_f32_kernels_avx2},
    {Cpu::avx512, &half_f32_kernels_avx512},
#endif
};

uint16_t narrowed(HalfKind kind, float x) {
  return kind == HalfKind::kF16 ? float_to_half(x) : float_to_bfloat(x);
}
float widened(HalfKind kind, uint16_t bits) {
  return kind == HalfKind::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
}
/// A NaN that signals becomes quiet on some processors.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

TEST(Half, EveryInstructionSetConvertsLikeTheDefinition) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(bits.size());
  // Every half's neighbourhood, ties among them, and random bits of every exponent; the count is odd.
  std::vector<float> tried;
  for (const HalfKind kind : {HalfKind::kF16, HalfKind::kBf16}) {
    for (size_t i = 0; i < bits.size(); i += 7) {
      const auto at = std::bit_cast<uint32_t>(widened(kind, bits[i]));
      const uint32_t tie = kind == HalfKind::kF16 ? 0x1000 : 0x8000;
      for (const uint32_t more : {0u, tie - 1, tie, tie + 1}) tried.push_back(std::bit_cast<float>(at + more));
    }
  }
  Random random(test_seed());
  while (tried.size() % 100000 != 99999) tried.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.bits())));
  for (const auto& [needs, kernels] : kConversions) {
    if (!cpu_runs(needs)) continue;
    for (const HalfKind kind : {HalfKind::kF16, HalfKind::kBf16}) {
      kernels->widen(kind, bits.data(), static_cast<int64_t>(bits.size()), floats.data());
      for (size_t i = 0; i < bits.size(); ++i) {
        ASSERT_TRUE(same(floats[i], widened(kind, bits[i]))) << kernel_isa_name(needs) << " widens " << i;
      }
      std::vector<uint16_t> got(tried.size());
      kernels->narrow(kind, tried.data(), static_cast<int64_t>(tried.size()), got.data());
      std::vector<float> rounded = tried;
      kernels->round(kind, rounded.data(), static_cast<int64_t>(rounded.size()));
      for (size_t i = 0; i < tried.size(); ++i) {
        ASSERT_EQ(got[i], narrowed(kind, tried[i])) << kernel_isa_name(needs) << " narrows " << tried[i];
        ASSERT_TRUE(same(rounded[i], widened(kind, got[i]))) << kernel_isa_name(needs) << " rounds " << tried[i];
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------- nodes of halves

/// The distance to the next number of the type beyond |x|.
double unit(DType dtype, double x) {
  const int bits = dtype == DType::kF16 ? 10 : 7, least = dtype == DType::kF16 ? -14 : -126;
  const double magnitude = std::fabs(x);
  const int exponent = magnitude > 0 && std::isfinite(magnitude) ? std::ilogb(magnitude) : least;
  return std::ldexp(1.0, std::max(exponent, least) - bits);
}

double element(const TensorType& type, const std::byte* bytes, int64_t i) {
  uint16_t half;
  std::memcpy(&half, bytes + 2 * i, sizeof half);
  return static_cast<double>(type.dtype == DType::kF16 ? half_to_float(half) : bfloat_to_float(half));
}

/// Each element within one unit in its last place, and what float32 kernels may differ by.
std::string differs_in_units(const TensorType& type, const std::byte* got, const std::byte* want,
                             const Tolerance& tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double w = element(type, want, i);
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
  }
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double g = element(type, got, i), w = element(type, want, i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    // Beyond the largest number is one unit further too.
    const double most = type.dtype == DType::kF16 ? 65504 : 3.3895313892515355e38;
    const auto bounded = [&](double x) { return std::isinf(x) ? std::copysign(most + unit(type.dtype, most), x) : x; };
    const double apart = std::fabs(bounded(g) - bounded(w));
    if (!(apart <=
          unit(type.dtype, w) + static_cast<double>(tolerance.abs) + static_cast<double>(tolerance.rel) * largest)) {
      return str_cat("element ", i, " of ", to_string(type), " is ", g, ", must be ", w, " (largest ", largest, ")");
    }
  }
  return {};
}

/// The case's node as a session compiles it: inputs in `values` are given at run time, the others are constants.
struct CompiledCase {
  std::vector<ReferenceOutput> outputs;
  std::string kernel;
};
Result<CompiledCase> run_compiled(const BuiltCase& built, uint32_t values, const std::string& target, int threads) {
  Graph graph = built.graph.clone();
  std::vector<ValueId> inputs;
  std::vector<TensorView> views;
  const auto all = built.input_views();
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const ValueId id = built.node().inputs.size() > i ? built.node().inputs[i] : kNoValue;
    if (id == kNoValue || !built.inputs[i].present) continue;
    if (i < 32 && (values >> i & 1)) {
      inputs.push_back(id);
      views.push_back(all[i]);
    } else {
      graph.value(id).constant = built.inputs[i].bytes;
    }
  }
  graph.inputs = inputs;
  OpTable ops;
  PINNACE_ASSIGN(TypeInference type_inference, infer_types(graph, {}, {}, ops));
  PackedConstants packed;
  const Segment segment{graph, type_inference, {0}, inputs, graph.nodes[0]->outputs, ops, packed, ""};
  PINNACE_ASSIGN(const auto executable, cpu_backend().compile(segment, TargetSpec{"cpu", target, "fp32"}));
  CompiledCase result;
  std::vector<TensorView> outputs;
  for (ValueId id : segment.outputs) {
    const TensorType& type = type_inference.types[static_cast<size_t>(id)];
    if (!type.concrete()) return unsupported("sizes that depend on data");
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "output"));
    result.outputs.push_back({type, std::move(bytes)});
  }
  for (ReferenceOutput& out : result.outputs) outputs.push_back({&out.type, out.bytes.data()});
  PINNACE_ASSIGN(Buffer workspace, Buffer::allocate(executable->workspace_bytes(), "workspace"));
  std::memset(workspace.data(), 0xff, executable->workspace_bytes());
  RunContext context;
  context.workspace = workspace.data();
  context.pool = &ThreadPool::shared();
  context.threads = threads;
  PINNACE_TRY(executable->run(context, views, outputs));
  result.kernel = std::string(executable->kernel(0));
  return result;
}

/// Instruction sets that choose different lines.
std::vector<std::string> sets_here() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  for (const char* name : {"sse2", "avx2", "avx_vnni", "avx512", "avx512_bf16", "amx_bf16"}) {
    Cpu isa;
    if (cpu_isa_from_name(name, &isa) && cpu_runs(isa)) names.emplace_back(name);
  }
#else
  names.emplace_back("neon");
#endif
  return names;
}

/// The number of runs that float32 kernels did.
int check_half_case(const BuiltCase& built, const std::string& isa, const std::string& sentence, Tolerance tolerance) {
  tolerance = {std::max(tolerance.abs, kFloat32.abs), std::max(tolerance.rel, 1e-5f)};  // Winograd's
  const auto reference = run_case(built);
  if (!reference.ok()) return 0;  // the parity test reports it
  int ran = 0;
  // Everything is given at run time, or only the first operand.
  for (const auto& [values, threads] : {std::pair(~0u, 1), std::pair(~0u, 3), std::pair(1u, 2)}) {
    uint32_t given = 0;
    for (size_t i = 0; i < built.inputs.size() && i < 32; ++i) {
      const CaseTensor& input = built.inputs[i];
      if (input.present && dtypes(input.type.dtype) & kFloats) given |= 1u << i;
    }
    const auto got = run_compiled(built, given & values, isa, threads);
    if (!got.ok() && got.status().code() == Code::kUnsupported) continue;
    if (!got.ok()) {
      ADD_FAILURE() << sentence << " on " << isa << ": " << got.status().message();
      return ran;
    }
    ran += got->kernel != "reference";
    for (size_t k = 0; k < reference->size(); ++k) {
      const TensorType& type = (*reference)[k].type;
      const std::byte *a = got->outputs[k].bytes.data(), *b = (*reference)[k].bytes.data();
      if (type.dtype == DType::kF16 || type.dtype == DType::kBF16) {
        EXPECT_EQ(differs_in_units(type, a, b, tolerance), "") << sentence << " on " << isa << " by " << got->kernel;
      } else {
        EXPECT_EQ(std::memcmp(a, b, (*reference)[k].bytes.size()), 0) << sentence << " on " << isa;
      }
    }
  }
  return ran;
}

TEST(Half, CasesOfEveryOperatorMatchTheReference) {
  int ran = 0;
  for (const CaseList& list : all_cases()) {
    const OpDef* op = find_op(list.op);
    if (!op->reference) continue;
    for (size_t i = 0; i < list.cases.size(); ++i) {
      for (const char* dtype : {"f16", "bf16"}) {
        // The case itself where it is of that type, else its float32 inputs in that type.
        const std::string inputs = in_type(list.cases[i].inputs, dtype);
        Case source = list.cases[i];
        source.inputs = inputs.c_str();
        source.expect = "";
        auto built = build_case(list.op, source, case_seed(list.op, i));
        if (!built.ok() || !infer_case(*built).ok()) continue;
        bool any = false;
        for (const CaseTensor& input : built->inputs) {
          any |= input.present && input.type.dtype == (dtype[0] == 'f' ? DType::kF16 : DType::kBF16);
        }
        if (!any) continue;
        const std::string sentence = str_cat(list.op, " case ", i, " (", inputs, " | ", source.attributes, ")");
        for (const std::string& isa : sets_here()) {
          ran += check_half_case(*built, isa, sentence, source.tolerance);
        }
      }
    }
  }
  EXPECT_GT(ran, 1000);
}

class HalfCases : public ::testing::TestWithParam<RandomFamily> {};

TEST_P(HalfCases, MatchTheReference) {
  const auto& [name, generate] = GetParam();
  int ran = 0;
  for (size_t i = 0; i < kRandomCases; ++i) {
    if (!in_slice(i, 20)) continue;
    Random random(case_seed(name, i));
    Draw draw{random};
    const RandomCase drawn = generate(draw);
    const char* dtype = i % 2 ? "f16" : "bf16";
    const std::string inputs = in_type(drawn.inputs, dtype);
    const Case source{.inputs = inputs.c_str(), .attributes = drawn.attributes.c_str(), .outputs = drawn.outputs};
    const std::string sentence =
        str_cat(name, " case ", i, ": ", drawn.op, " (", inputs.substr(0, 300), " | ", drawn.attributes, ")");
    const auto built = build_case(drawn.op.c_str(), source, case_seed(name, i));
    ASSERT_TRUE(built.ok()) << sentence << ": " << built.status().message();
    for (const std::string& isa : sets_here()) {
      ran += check_half_case(*built, isa, sentence, drawn.tolerance);
    }
  }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, HalfCases, ::testing::ValuesIn(random_families()),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace pinnace::testing
