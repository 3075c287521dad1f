// Operators whose answers in 32 bits are the reference's to the bit, with indices, lengths, scales and sizes that a run
// brings, and the same bits each time; what the kernels report of such indices and lengths.
#include <gtest/gtest.h>

#include <cstring>

#include "cases/parse_case.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/lone_node.h"

namespace pinnace::testing {
namespace {

struct Call {
  const char *op, *inputs, *attributes = "";
  int outputs = 1;
};
constexpr Call kCalls[] = {
    // Several owners of a column, more columns than keep a device busy, a column of two dispatches.
    {"scatter_elements", "f32[17,5];i64[300,5] in -17..16;f32[300,5]"},
    {"scatter_elements", "f32[17,5];i64[300,5] in -17..16;f32[300,5]", "reduction=\"add\""},
    {"scatter_elements", "f32[17,5];i64[300,5] in -17..16;f32[300,5] in 0.5..2", "reduction=\"mul\""},
    {"scatter_elements", "f32[17,5];i64[300,5] in -17..16;f32[300,5]", "reduction=\"max\""},
    {"scatter_elements", "f32[17,5];i64[300,5] in -17..16;f32[300,5]", "reduction=\"min\""},
    {"scatter_elements", "f32[3,40,50];i32[3,9,43] in 0..39;f32[3,9,43]", "axis=1, reduction=\"add\""},
    {"scatter_elements", "f32[3,6,50];i32[2,5,90] in 0..49;f32[2,5,90]", "axis=2, reduction=\"add\""},
    {"scatter_elements", "f32[7,5003];i32[9,5001] in 0..6;f32[9,5001]", "reduction=\"add\""},
    {"scatter_elements", "f32[13];i64[70000] in 0..12;f32[70000]", "reduction=\"add\""},
    {"scatter_elements", "i8[17,5];i64[300,5] in -17..16;i8[300,5]", "reduction=\"mul\""},
    {"scatter_elements", "u16[17,5];i64[30,5] in -17..16;u16[30,5]", "reduction=\"add\""},
    {"scatter_elements", "i32[17,5];i64[300,5] in -17..16;i32[300,5]", "reduction=\"mul\""},
    {"scatter_elements", "i64[17,5];i64[300,5] in -17..16;i64[300,5]", "reduction=\"add\""},
    {"scatter_elements", "bool[17,5];i64[300,5] in -17..16;bool[300,5]"},
    {"scatter_nd", "f32[9,7,4];i64[50,2] in -7..6;f32[50,4]"},
    {"scatter_nd", "f32[9,7,4];i64[50,2] in -7..6;f32[50,4]", "reduction=\"add\""},
    {"scatter_nd", "f32[9,7,4];i64[5,10,3] in -4..3;f32[5,10]", "reduction=\"min\""},
    {"scatter_nd", "f32[300,33];i64[100,1] in 0..299;f32[100,33]", "reduction=\"add\""},
    {"scatter_nd", "i32[9,7,4];i64[50,1] in -9..8;i32[50,7,4]", "reduction=\"max\""},
    {"scatter_nd", "f32[3,5];i64[4,0];f32[4,3,5]", "reduction=\"add\""},
    {"mod", "f32[1500] x1e6;f32[1500]"},
    {"mod", "f32[1500] x1e6;f32[1500]", "fmod=1"},
    {"mod", "f32[3,1,200] x1e30;f32[5,1] x1e-6"},
    {"mod", "f32[500] in -4..4;f32[500] x1e20", "fmod=1"},
    {"range", "f32[]{-3.7};f32[]{63};f32[]{0.013}"},
    {"range", "f32[]{1e6};f32[]{-7};f32[]{-777.7}"},
    {"range", "f32[]{0};f32[]{1};f32[]{3.3333e-4}"},
    {"pow", "i32[300] in -12..12;i32[300] in -3..40"},
    {"pow", "i8[40,1];u8[30] in 0..9"},
    {"pow", "i64[40] in -9..9;i32[40] in 0..9"},
    {"dynamic_quantize_linear", "f32[3001]", "", 3},
    {"dynamic_quantize_linear", "f32[7,900] in -0.3..40", "", 3},
    {"dynamic_quantize_linear", "f32[20000] x1e-20", "", 3},
    {"dynamic_quantize_linear", "f32[513] in 3..255", "", 3},
    {"dynamic_quantize_linear", "f32[12]{255,0.5,1.5,2.5,3.5,4.5,5.5,126.5,127.5,200.5,253.5,254.5}", "", 3},
    {"mat_mul_integer", "u8[3,5,70];i8[70,33];u8[5];i8[33]"},
    {"mat_mul_integer", "u8[2,1,5,37];i8[3,37,9];u8[2,1,5,1];i8[3,1,9]"},
    {"mat_mul_integer", "i8[65,130];i8[130,17]"},
    {"reverse_sequence", "f32[9,4,3];i64[4] in 0..9"},
    {"reverse_sequence", "i8[4,9,3];i32[4] in 0..9", "batch_axis=0, time_axis=1"},
};

class GpuBits : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  auto run(const BuiltCase& built, uint32_t values) const {
    return run_case_with(
        [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
          return run_on(backend_of(*GetParam()), {GetParam()->name, "", "fp32"}, values, node, in, out);
        },
        built);
  }
};

TEST_P(GpuBits, AreTheReferencesAndTheSameEachTime) {
  const GpuOptions options("validation");
  const auto context = gpu::Context::open(*GetParam(), 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  for (const Call& call : kCalls) {
    const Case source{.inputs = call.inputs, .attributes = call.attributes, .outputs = call.outputs};
    const auto built = build_case(call.op, source, test_seed());
    ASSERT_TRUE(built.ok()) << call.inputs << built.status().message();
    const auto want = run_case(*built);
    ASSERT_TRUE(want.ok()) << call.inputs << want.status().message();
    for (const uint32_t values : {~0u, 1u, ~0u}) {
      const std::string where = str_cat(call.op, " ", call.inputs, " ", call.attributes, ", open ", values);
      const auto got = run(*built, values);
      ASSERT_TRUE(got.ok()) << where << ": " << got.status().message();
      for (size_t o = 0; o < want->size(); ++o) {
        const auto bytes = static_cast<size_t>((*want)[o].type.bytes());
        const TensorView w{&(*want)[o].type, const_cast<std::byte*>((*want)[o].bytes.data())};
        const TensorView g{&(*got)[o].type, const_cast<std::byte*>((*got)[o].bytes.data())};
        if (bytes == 0 || std::memcmp(w.bytes, g.bytes, bytes) == 0) continue;
        for (int64_t i = 0; i < w.elements(); ++i) {
          if (element(w, i) == element(g, i)) continue;
          ADD_FAILURE() << where << ", output " << o << ", element " << i << " is " << element(g, i) << ", must be "
                        << element(w, i);
          break;
        }
        ADD_FAILURE() << where << ", output " << o << " has other bits";
      }
    }
  }
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
}

TEST_P(GpuBits, WhatARunBringsIsChecked) {
  constexpr struct {
    const char *op, *inputs, *attributes, *said;
  } kWrong[] = {
      {"scatter_elements", "f32[4,2];i64[1,2]{0,4};f32[1,2]", "", "index 4 is outside a dimension of size 4"},
      {"scatter_elements", "f32[4];i64{0,-5};f32[2]", "reduction=\"add\"", "index -5 is outside a dimension of size 4"},
      {"scatter_nd", "i32[3,2];i64[1,2]{1,2};i32[1]", "", "index 2 is outside a dimension of size 2"},
      {"reverse_sequence", "f32[3,2];i64{1,4}", "", "a sequence's length is 4, must be in [0, 3]"},
      {"reverse_sequence", "f32[2,3];i64{-1,3}", "batch_axis=0, time_axis=1",
       "a sequence's length is -1, must be in [0, 3]"},
      {"rnn", "f32[3,2,4];f32[1,5,4];f32[1,5,5];none;i32{2,4}", "hidden_size=5",
       "a sequence's length is 4, must be in [0, 3]"},
      {"mod", "i32{1,2};i32{1,0}", "", "an element of the divisor is 0"},
  };
  for (const auto& wrong : kWrong) {
    const Case source{.inputs = wrong.inputs, .attributes = wrong.attributes};
    const auto built = build_case(wrong.op, source, test_seed());
    ASSERT_TRUE(built.ok()) << wrong.inputs << built.status().message();
    // The weights of an rnn are constants.
    const auto got = run(*built, std::strcmp(wrong.op, "rnn") == 0 ? 0b10001u : ~0u);
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument) << wrong.op << ": " << got.status().message();
    EXPECT_NE(got.status().message().find(wrong.said), std::string::npos) << got.status().message();
  }
}

// What 32 bits do not hold goes to the next target; within them the answer is exact.
TEST_P(GpuBits, SumsBeyond32BitsAreGivenBack) {
  for (const char* inputs :
       {"i64[2]{2147483000,1};i64{0,1};i64{1000,5}", "i64[2]{1,1};i64{0,0,0,1};i64{2000,2000,2000,2}"}) {
    const bool sum = std::strchr(inputs, '7') != nullptr;
    const Case source{.inputs = inputs, .attributes = sum ? "reduction=\"add\"" : "reduction=\"mul\""};
    const auto built = build_case("scatter_elements", source, test_seed());
    ASSERT_TRUE(built.ok()) << built.status().message();
    const auto got = run(*built, ~0u);
    EXPECT_EQ(got.status().code(), Code::kDeviceLost) << inputs;
    EXPECT_NE(got.status().message().find("32-bit integers"), std::string::npos) << got.status().message();
  }
}

TEST_P(GpuBits, WhatTakesTooLongIsRefused) {
  const Case source{.inputs = "f32[4];i64[4194305] in 0..3;f32[4194305]"};
  const auto built = build_case("scatter_elements", source, test_seed());
  ASSERT_TRUE(built.ok()) << built.status().message();
  const auto got = run(*built, ~0u);
  EXPECT_EQ(got.status().code(), Code::kUnsupported);
  EXPECT_EQ(got.status().rule(), "V-7");
  EXPECT_NE(got.status().message().find("4194305 updates in a row, has 4194304"), std::string::npos)
      << got.status().message();
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuBits, ::testing::ValuesIn(gpu_drivers()), driver_name);

}  // namespace
}  // namespace pinnace::testing
