// Weights of NNAPI models whose bytes depend on the sizes of a run: plans of one session share none of them.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.h"
#include "cpp/text_program.h"

namespace pinnace {
namespace {

TEST(NnapiSizes, RowsCountedFromTheEndAreThoseOfTheirSize) {
  std::string indices;  // above 128 bytes, or the library copies them
  for (int i = 40; i > 0; --i) indices += str_cat(i < 40 ? "," : "", -i);
  const Program program = testing::program_of(str_cat(R"(graph "g" {
    symbol n 40..1000
    input %x : f32[n,4]
    const %last : i64[40] = {)",
                                                      indices, R"(}
    %y = gather(%x, %last) {axis=0}
    output "y" %y
  })"));
  Options options;
  options.target = "nnapi:fl8";
  options.fallback = false;
  auto session = Session::create(program, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int64_t n : {100, 60, 120, 100}) {
    std::vector<float> x(static_cast<size_t>(n) * 4);
    std::iota(x.begin(), x.end(), 0.0f);
    Tensor in;
    in.type = {DType::kF32, {Dim(n), Dim(4)}, nullptr};
    in.memory.host = reinterpret_cast<std::byte*>(x.data());
    in.memory.bytes = x.size() * sizeof(float);
    const std::vector<Tensor> inputs = {in};
    const Status status = session->run(inputs);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::memcmp(session->output(0).memory.host, x.data() + (n - 40) * 4, 640), 0) << n;
  }
}

}  // namespace
}  // namespace pinnace
