// Reference code on several threads: the same bytes, and the same error, for any number of them. Every case of every
// operator is divided as far as it can be; larger ones follow for loops that only go to threads from 64 elements on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "base/status.h"
#include "base/threads/thread_pool.h"
#include "cases/run_case.h"

namespace pinnace::testing {

namespace {

using Outputs = Result<std::vector<ReferenceOutput>>;

ThreadPool& pool() {
  static ThreadPool pool;
  return pool;
}

Outputs run_on(const BuiltCase& built, const Threads& threads, const RunOptions& options = {}) {
  if (!built.op->reference) {
    return run_reference(built.node(), *built.op, built.input_views(), built.declared(), {}, threads);
  }
  const auto run = [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
    NodeView divided = node;
    divided.set_threads(threads);
    return built.op->reference(divided, in, out);
  };
  return run_case_with(run, built, options);
}

void expect_same(const Outputs& one, const Outputs& many, int threads) {
  SCOPED_TRACE(str_cat(threads, " threads"));
  ASSERT_EQ(one.status().code(), many.status().code()) << one.status().message() << " / " << many.status().message();
  EXPECT_EQ(one.status().message(), many.status().message());
  if (!one.ok()) return;
  ASSERT_EQ(one->size(), many->size());
  for (size_t i = 0; i < one->size(); ++i) {
    EXPECT_TRUE((*one)[i].type == (*many)[i].type);
    const size_t bytes = (*one)[i].bytes.size();
    ASSERT_EQ(bytes, (*many)[i].bytes.size());
    EXPECT_EQ(bytes ? std::memcmp((*one)[i].bytes.data(), (*many)[i].bytes.data(), bytes) : 0, 0) << "output " << i;
  }
}

/// The output may lie over input 0.
bool runs_in_place(const BuiltCase& built, const Outputs& outputs) {
  const CaseTensor* x = built.inputs.empty() ? nullptr : &built.inputs[0];
  return x && x->present && outputs.ok() && (built.op->in_place & 1) && x->type.dtype == (*outputs)[0].type.dtype &&
         x->type.shape == (*outputs)[0].type.shape && built.op->reference;
}

void check(const char* op, const Case& source, size_t place, bool must_run = false) {
  SCOPED_TRACE(str_cat(op, " case ", place, " (", source.inputs, "; ", source.attributes, "), seed ", test_seed()));
  const auto built = build_case(op, source, case_seed(op, place));
  ASSERT_TRUE(built.ok()) << built.status().message();
  const Outputs one = run_on(*built, Threads());
  ASSERT_TRUE(one.ok() || !must_run) << one.status().message();
  for (int threads : {2, 3, 7}) {
    const Threads all(&pool(), threads, 0);
    expect_same(one, run_on(*built, all), threads);
    if (runs_in_place(*built, one)) expect_same(one, run_on(*built, all, {.in_place_input = 0}), threads);
  }
}

TEST(ReferenceThreads, GivesTheSameBytesOfEveryCase) {
  for (const CaseList& list : all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) check(list.op, list.cases[i], i);
  }
}

struct NamedCase {
  const char* op;
  Case source;
};

const NamedCase kLarge[] = {
    {"relu", {"f32[3,131]"}},
    {"relu", {"i8[1000]{scale 0.5, zero 3}", "", 1, "", {}, "scale 0.25, zero -3"}},
    {"exp", {"f16[1,777]"}},
    {"tanh", {"u8[700]{scale 0.1, zero 128}", "", 1, "", {}, "scale 0.01, zero 128"}},
    {"add", {"f32[5,3,67];f32[3,1]", "activation=\"gelu\""}},
    {"add", {"i8[9,131]{scale 0.5, zero 3};i8[131]{scale 0.1, zero 0}", "", 1, "", {}, "scale 0.5, zero 3"}},
    {"mul", {"i32[1,257];i32[3,1]"}},
    {"max", {"f32[7,40];f32[40];f32[7,1]", ""}},
    {"less", {"bf16[300];bf16[]"}},
    {"equal", {"u8[300]{scale 0.5, zero 3};u8[300]{scale 0.25, zero 3}"}},
    {"where", {"bool[4,1,65];f64[65];f64[3,1]"}},
    {"pow", {"f32[500] in 0..3;f32[500]"}},
    {"trilu", {"i16[3,21,17]"}},
    {"cast", {"f32[1001] x10", "to=\"i4\""}},
    {"cast", {"f32[1001] x10", "to=\"f6e2m3\""}},
    {"cast", {"f32[1001] x10", "to=\"u8\""}},
    {"quantize_linear", {"f32[3,333];f32[3] in 0.1..1", "axis=0, output_dtype=\"i4\""}},
    {"quantize_linear", {"f32[3,333];f32[3] in 0.1..1", "axis=0, output_dtype=\"f4e2m1\""}},
    {"dequantize_linear", {"i8[7,99];f32[7,33] in 0.1..1", "axis=1, block_size=3"}},
    {"gather_elements", {"f32[9,300];i64[9,300] in 0..8", "axis=0"}},
    {"conv", {"f32[2,6,19,23];f32[10,3,3,3];f32[10]", "group=2, strides=[1,2], activation=\"silu\""}},
    {"conv", {"f32[1,33,17,9];f32[33,1,3,3]", "group=33, pads=[1,1,1,1]"}},
    {"conv", {"f16[9,2,31];f16[1,2,4]", "dilations=[2]"}},
    {"conv_transpose", {"f32[2,6,9,8];f32[6,5,3,3];f32[10]", "group=2, strides=[2,2]"}},
    {"conv_integer", {"u8[2,3,12,12];i8[40,3,3,3]"}},
    {"mat_mul", {"f32[130,40];f32[40,90]"}},
    {"mat_mul", {"f32[1,300];f32[300,203];f32[203]", "activation=\"relu\""}},
    {"mat_mul", {"f32[5,1,33,8];f32[3,8,50]"}},
    {"mat_mul", {"i64[70,9];i64[9,70]"}},
    {"mat_mul_integer", {"u8[40,70];i8[70,60];u8[40];i8[60]"}},
    {"gemm", {"f32[65,7];f32[130,7];f32[65,1]", "trans_b=1, alpha=0.5, beta=2.0"}},
    {"gemm", {"f16[7,65];f16[7,130];f16[130]", "trans_a=1"}},
    {"attention", {"f32[2,4,33,8];f32[2,2,21,8];f32[2,2,21,6]", "is_causal=1", 3}},
    {"lstm", {"f32[5,7,3];f32[2,16,3];f32[2,16,4]", "direction=\"bidirectional\", hidden_size=4", 3}},
    {"dft", {"f32[6,30,2]", ""}},
    {"stft", {"f32[3,400];i64[]{37};f32[100]", ""}},
    {"eigh", {"f32[40,9,9]", "", 2}},
    {"qr", {"f32[40,9,6]", "mode=\"complete\"", 2}},
    {"svd", {"f32[40,6,9]", "full_matrices=1", 3}},
    {"einsum", {"f32[17,9];f32[9,21]", "equation=\"ij,jk->ki\""}},
    {"resize", {"f32[2,3,11,7];none;f32{1,1,2.5,1.5}", "mode=\"cubic\""}},
    {"resize", {"u8[1,1,40,33];none;f32{1,1,2.5,0.5}", "mode=\"nearest\""}},
    {"pad", {"f32[5,40];i64{1,2,3,4}", "mode=\"reflect\""}},
    {"transpose", {"f32[7,30,11]", "perm=[2,0,1]"}},
    {"top_k", {"f32[9,31,5];i64[]{7}", "axis=1", 2}},
    {"cum_sum", {"f32[9,31,5];i64[]{1}", "reverse=1"}},
};

TEST(ReferenceThreads, GivesTheSameBytesOfLargerTensors) {
  for (size_t i = 0; i < std::size(kLarge); ++i) check(kLarge[i].op, kLarge[i].source, i, true);
}

TEST(ReferenceThreads, NamesTheFirstOfSeveralErrors) {
  std::string matrices = "f32[200,1,1]{";
  for (int i = 0; i < 200; ++i)
    matrices += i == 57 || i == 58 || i == 190 ? "-1" : "4", matrices += i < 199 ? "," : "}";
  const Case source{matrices.c_str()};
  const auto built = build_case("cholesky", source, 1);
  ASSERT_TRUE(built.ok()) << built.status().message();
  for (int repeat = 0; repeat < 50; ++repeat) {
    const Status status = run_on(*built, Threads(&pool(), 1 + repeat % 7, 0)).status();
    EXPECT_NE(status.message().find("matrix 57 of a is not positive definite"), std::string::npos) << status.message();
  }
}

TEST(Threads, DivideEveryItemOnceAtMultiplesOfTheGrain) {
  for (int64_t total : {0, 1, 63, 64, 65, 1000, 4097}) {
    for (int64_t grain : {1, 64}) {
      for (int count : {1, 2, 3, 7}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(total));
        std::atomic<int64_t> calls = 0;
        Threads(&pool(), count, 0)
            .ranges(
                total, 1.0,
                [&](int64_t first, int64_t last) {
                  ++calls;
                  EXPECT_EQ(first % grain, 0);
                  EXPECT_LT(first, last);
                  for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
                },
                grain);
        for (const auto& times : seen) EXPECT_EQ(times, 1);
        EXPECT_EQ(calls > 1, count > 1 && total > grain) << total << " by " << grain << " on " << count;
      }
    }
  }
}

TEST(Threads, LeaveSmallWorkWhole) {
  int calls = 0;
  Threads(&pool(), 8).ranges(1000, 20.0, [&](int64_t first, int64_t last) { calls += last - first == 1000; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace pinnace::testing
