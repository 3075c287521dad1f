// Products on tile registers: the model against the processor's tiles, bit by bit, and what happens where a machine
// loses tiles. That they compute the right thing the kernels' own tests check, on the processor's tiles where it has
// them, else on the model.
#if defined(__x86_64__)
#include "backends/cpu/matmul/amx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/tile_losses.h"
#include "base/half.h"
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

using namespace cpu;

/// Where there are no tiles, or with PINNACE_TEST_MODEL_TILES=1, lines of kernels.inc that need them run on the model
/// in every test.
class TilesOrTheirModel : public ::testing::Environment {
 public:
  void SetUp() override { model_tiles(std::getenv("PINNACE_TEST_MODEL_TILES") || !cpu_runs(Cpu::amx_bf16)); }
};
[[maybe_unused]] const auto* const kTiles = ::testing::AddGlobalTestEnvironment(new TilesOrTheirModel);

/// The model loses its tiles after each so many products, as long as this lives.
struct Losing {
  explicit Losing(int64_t each) { lose_model_tiles(each); }
  ~Losing() { lose_model_tiles(0); }
};

/// An image of runs of M rows, some bytes apart, a panel for it, and room for results with an image to be added.
struct Problem {
  int64_t M, runs, blocks, elements, border;
  int32_t width, columns;
  bool adds;
  std::vector<ptrdiff_t> places;
  std::vector<uint8_t> rows;
  std::vector<std::byte> panel;
  int64_t a_row, a_run;  ///< elements of 4 bytes
  explicit Problem(Random& random) {
    const auto upto = [&](int64_t low, int64_t high) { return random.integer(low, high); };
    M = upto(1, 40), runs = upto(1, 5), blocks = upto(1, 4), border = upto(0, 3);
    elements = upto(0, 1) ? upto(1, 20) : 16 * upto(1, 4);
    width = static_cast<int32_t>(8 * upto(1, 4));
    columns = static_cast<int32_t>(upto(width - 7, width));
    adds = upto(0, 1);
    a_row = elements + upto(0, 2);
    a_run = (M + border) * a_row + (upto(0, 3) ? 0 : upto(1, 3));  // runs join only where rows stand at one distance
    for (int64_t i = 0; i < blocks; ++i) places.push_back(upto(0, 30));
    rows.resize(static_cast<size_t>(4 * (a_run * runs + 64 + a_row * M)));
    for (uint8_t& byte : rows) byte = static_cast<uint8_t>(upto(0, 255));
    panel.resize(static_cast<size_t>(4 * width * (2 + blocks * elements)) + 64);
  }
};

std::vector<uint8_t> product_i8(const Problem& p, GemmRowsLoopI8* loop) {
  const int64_t c_row = p.width + 3, c_run = c_row * (p.M + 1);
  std::vector<uint8_t> c(static_cast<size_t>(c_run * p.runs + p.width), 0xee), added(c.size());
  for (size_t i = 0; i < added.size(); ++i) added[i] = static_cast<uint8_t>(i * 37);
  std::vector<ptrdiff_t> places;
  for (const ptrdiff_t place : p.places) places.push_back(4 * place);
  GemmRowsI8 g{};
  g.a = p.rows.data();
  g.a_row = 4 * p.a_row;
  g.a_run = 4 * p.a_run;
  g.blocks = places.data();
  g.block_count = p.blocks;
  g.quads = p.elements;
  g.b = p.panel.data();
  g.c = c.data();
  g.c_row = c_row;
  g.c_run = c_run;
  g.M = p.M;
  g.runs = p.runs;
  g.columns = p.columns;
  g.store = {7, 3, 250};
  if (p.adds) g.added = {added.data(), c_row, c_run, {0.031f, 100}, {0.017f, 120}, 0.043f};
  loop(g, p.width);
  return c;
}

void fill_i8(Problem& p, Random& random) {
  auto* numbers = reinterpret_cast<int32_t*>(p.panel.data());
  auto* scales = reinterpret_cast<float*>(numbers + p.width);
  for (int32_t j = 0; j < p.width; ++j) {
    numbers[j] = static_cast<int32_t>(random.integer(-30000, 30000));
    scales[j] = 1e-5f * static_cast<float>(random.integer(1, 300));
  }
  auto* weights = reinterpret_cast<uint8_t*>(scales + p.width);
  for (int64_t i = 0; i < 4 * p.width * p.blocks * p.elements; ++i) {
    weights[i] = static_cast<uint8_t>(random.integer(0, 255));
  }
}

/// All rows of a run, or `count` from `first` on; the others keep 0.5.
std::vector<float> product_bf16(const Problem& p, GemmRowsLoopBf16* loop, int64_t first, int64_t count) {
  const int64_t c_row = p.width + 3, c_run = c_row * (p.M + 1);
  std::vector<float> c(static_cast<size_t>(c_run * p.runs + p.width), 0.5f), residual(c.size());
  for (size_t i = 0; i < residual.size(); ++i) residual[i] = 0.01f * static_cast<float>(i % 101);
  GemmRowsF32 g{};
  g.a = reinterpret_cast<const float*>(p.rows.data()) + first * p.a_row;
  g.a_row = p.a_row;
  g.a_run = p.a_run;
  g.blocks = p.places.data();
  g.block_count = p.blocks;
  g.k = p.elements;
  g.b = reinterpret_cast<const float*>(p.panel.data());
  g.c = c.data() + first * c_row;
  g.c_row = c_row;
  g.c_run = c_run;
  g.residual = p.adds ? residual.data() + first * c_row : nullptr;
  g.residual_row = c_row;
  g.residual_run = c_run;
  g.M = count;
  g.runs = p.runs;
  g.columns = p.columns;
  g.map = {UnaryKind::kClip, -1000.0f, 1000.0f};
  loop(g, p.width);
  return c;
}

std::vector<float> product_bf16(const Problem& p, GemmRowsLoopBf16* loop) {
  return product_bf16(p, loop, 0, p.M);
}

/// Of every size of exponent from 2^-20 to 2^20; one in 64 is 0.
void fill_bf16(Problem& p, Random& random) {
  const auto number = [&] {
    if (random.integer(0, 63) == 0) return 0.0f;
    return std::ldexp(1.0f + static_cast<float>(random.integer(0, 127)) / 128,
                      static_cast<int>(random.integer(-20, 20))) *
           (random.integer(0, 1) ? 1.0f : -1.0f);
  };
  auto* bias = reinterpret_cast<float*>(p.panel.data());
  for (int32_t j = 0; j < p.width; ++j) bias[j] = number();
  auto* weights = reinterpret_cast<uint16_t*>(bias + p.width);
  for (int64_t i = 0; i < 2 * p.width * p.blocks * p.elements; ++i) weights[i] = float_to_bfloat(number());
  auto* rows = reinterpret_cast<uint16_t*>(p.rows.data());
  for (size_t i = 0; i < p.rows.size() / 2; ++i) rows[i] = float_to_bfloat(number());
}

TEST(Tiles, TheModelHasTheBitsOfTheProcessor) {
  if (!cpu_runs(Cpu::amx_bf16)) GTEST_SKIP() << "this processor does not have amx_bf16";
  Random random(test_seed());
  for (int i = 0; i < 200; ++i) {
    Problem p(random);
    fill_i8(p, random);
    ASSERT_EQ(product_i8(p, gemm_i8_amx_amx_int8), product_i8(p, gemm_i8_amx_generic)) << i << "; seed " << test_seed();
    fill_bf16(p, random);
    const std::vector<float> got = product_bf16(p, gemm_bf16_amx_amx_bf16),
                             want = product_bf16(p, gemm_bf16_amx_generic);
    ASSERT_EQ(std::memcmp(got.data(), want.data(), 4 * got.size()), 0) << i << "; seed " << test_seed();
  }
}

TEST(Tiles, RowsMayBeCutAnywhere) {
  Random random(test_seed());
  for (int i = 0; i < 60; ++i) {
    Problem p(random);
    fill_bf16(p, random);
    const int64_t cut = random.integer(0, p.M);
    const std::vector<float> whole = product_bf16(p, gemm_bf16_amx_generic);
    const std::vector<float> first = product_bf16(p, gemm_bf16_amx_generic, 0, cut);
    std::vector<float> both = product_bf16(p, gemm_bf16_amx_generic, cut, p.M - cut);
    for (size_t k = 0; k < both.size(); ++k) {
      if (both[k] == 0.5f) both[k] = first[k];
    }
    EXPECT_EQ(both, whole) << i << "; seed " << test_seed();
  }
}

/// A machine that loses tiles now and then, with every product, and never: the same results.
TEST(Tiles, LostOnesAreFoundAndComputedAgain) {
  Random random(test_seed());
  for (int i = 0; i < 60; ++i) {
    Problem p(random);
    fill_i8(p, random);
    const std::vector<uint8_t> bytes = product_i8(p, gemm_i8_amx_generic);
    Problem q(random);
    fill_bf16(q, random);
    const std::vector<float> floats = product_bf16(q, gemm_bf16_amx_generic);
    for (const int64_t each : {1, 3, 50, 1001}) {
      const int64_t before = lost_tiles();
      {
        const Losing losing(each);
        ASSERT_EQ(product_i8(p, gemm_i8_amx_generic), bytes) << i << ", lost after " << each;
        const std::vector<float> again = product_bf16(q, gemm_bf16_amx_generic);
        ASSERT_EQ(std::memcmp(again.data(), floats.data(), 4 * floats.size()), 0) << i << ", lost after " << each;
      }
      if (each == 1) {
        EXPECT_GT(lost_tiles(), before);
      }
    }
  }
}

}  // namespace
}  // namespace pinnace::testing
#endif
