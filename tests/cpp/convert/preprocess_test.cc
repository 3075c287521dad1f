// Model::preprocessed(): a picture becomes a model's input. Bits against integer arithmetic written out here, on every
// instruction set that this processor has; no allocation once planned; what stands in the metadata; refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include <pinnace/session.h>

#include "cpp/counted_memory.h"
#include "cpp/text_program.h"

namespace pinnace::testing {
namespace {

constexpr const char* kIdentity = R"(graph "g" {
  symbol n 1..4
  input %x : f32[n,3,9,13]
  %y = identity (%x)
  output "y" %y
})";

Program built(const Preprocessing& how, const char* text = kIdentity) {
  Result<Model> model = model_of(text).preprocessed(how);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.status().message());
  Result<Program> program = model->build();
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.status().message());
  return std::move(*program);
}

std::string refusal(const Preprocessing& how, const char* text = kIdentity, std::string_view input = {}) {
  const Result<Model> model = model_of(text).preprocessed(how, input);
  EXPECT_FALSE(model.ok());
  EXPECT_EQ(model.ok() ? Code::kOk : model.status().code(), Code::kInvalidArgument);
  return model.ok() ? "" : model.status().message();
}

Tensor tensor_of(std::vector<uint8_t>& bytes, Shape shape) {
  return {{DType::kU8, std::move(shape), nullptr}, {bytes.data(), bytes.size()}};
}

/// The weights of BT.601 in full range in units of 1 / 16384, worked out by hand: 1.402, 0.344136, 0.714136, 1.772.
float byte_of(int64_t units) {
  const double exact = static_cast<double>(units) / 16384;
  return static_cast<float>(std::clamp(std::nearbyint(exact), 0.0, 255.0));
}

TEST(Preprocess, Nv21WithStridesHasTheBitsOfIntegers) {
  constexpr int64_t kHeight = 9, kWidth = 13, kRow = 16, kChroma = 20;
  const Preprocessing how{.input = "nv21",
                          .height = kHeight,
                          .width = kWidth,
                          .row_stride = kRow,
                          .chroma_row_stride = Preprocessing::kOpen,
                          .scale = 1};
  const Program program = built(how);
  std::mt19937 random(5);
  std::vector<uint8_t> luma(kHeight * kRow), chroma(5 * kChroma);
  for (uint8_t& b : luma) b = static_cast<uint8_t>(random());
  for (uint8_t& b : chroma) b = static_cast<uint8_t>(random());
  std::vector<float> want;
  for (int c = 0; c < 3; ++c) {
    for (int64_t row = 0; row < kHeight; ++row) {
      for (int64_t column = 0; column < kWidth; ++column) {
        const int64_t y = int64_t{luma[row * kRow + column]} * 16384;
        const int64_t v = chroma[row / 2 * kChroma + column / 2 * 2] - 128,
                      u = chroma[row / 2 * kChroma + column / 2 * 2 + 1] - 128;
        const int64_t units[] = {y + 22970 * v, y - 5638 * u - 11700 * v, y + 29032 * u};
        want.push_back(byte_of(units[c]));
      }
    }
  }
  const Tensor inputs[] = {tensor_of(luma, {kHeight, kRow}), tensor_of(chroma, {5, kChroma})};
  int ran = 0;
  for (const char* target : {"cpu:generic", "cpu:avx2", "cpu:avx512", "cpu:neon", "cpu", "softmetal"}) {
    Result<Session> session = Session::create(program, {.target = target});
    if (!session) continue;  // not on this machine
    ASSERT_TRUE(session->run(inputs).ok()) << target;
    const Tensor got = session->output(0);
    ASSERT_EQ(got.memory.bytes, want.size() * sizeof(float)) << target;
    EXPECT_EQ(std::memcmp(got.memory.host, want.data(), got.memory.bytes), 0) << target;
    ++ran;
  }
  EXPECT_GE(ran, 2);
}

TEST(Preprocess, AllocatesNothingOncePlanned) {
  constexpr const char* kMask = R"(graph "g" {
    input %x : f32[1,3,12,10]
    %y = sigmoid (%x)
    output "y" %y
  })";
  if (!kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  for (const char* input : {"nv21", "rgb", "bgra", "i420"}) {
    const bool planes = std::string_view(input) == "nv21";
    const Preprocessing how{.input = input,
                            .height = 31,
                            .width = 33,
                            .row_stride = planes ? 40 : 0,
                            .crop_box = {1, 3, 28, 29},
                            .size = {12, 10},
                            .mean = {0.4, 0.5, 0.6},
                            .std = {0.2}};
    const Program program = built(how, kMask);
    Result<Session> session = Session::create(program, {.target = "cpu", .threads = 2});
    ASSERT_TRUE(session.ok()) << session.status().message();
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<Tensor> inputs;
    for (const TensorSpec& spec : session->inputs()) bytes.emplace_back(static_cast<size_t>(spec.type.elements()), 77);
    for (size_t i = 0; i < bytes.size(); ++i) inputs.push_back(tensor_of(bytes[i], session->inputs()[i].type.shape));
    std::vector<float> made(3 * 12 * 10);
    std::vector<Tensor> outputs = {{session->outputs()[0].type, {made.data(), made.size() * sizeof(float)}}};
    ASSERT_TRUE(session->run(inputs, outputs).ok());
    for (const Placement& row : session->placement()) {  // what keeps the bytes is a copy, which needs no kernel
      const bool copies = row.op == "cast" || row.op == "reshape" || row.op == "unsqueeze";
      EXPECT_TRUE(copies || row.kernel != "reference") << row.node;
    }
    size_t allocations = 0;
    Status status;
    {
      const MemoryWatch watch;
      status = session->run(inputs, outputs);
      allocations = watch.allocations();
    }
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(allocations, 0u) << input;
  }
}

TEST(Preprocess, SaysInTheFileWhatTheInputsAre) {
  const Model model = model_of(kIdentity);
  Result<Model> made = model.preprocessed({.name = "photo", .input = "nv12", .height = 9, .width = 13}, "x");
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->inputs().size(), 2u);
  EXPECT_EQ(made->inputs()[0].name, "photo.y");
  EXPECT_EQ(to_string(made->inputs()[1].type), "uint8[5,14]");
  EXPECT_EQ(to_string(made->outputs()[0].type, made->symbols()), "float32[1,3,9,13]");
  const std::string inputs[] = {"luma", "photo.uv"}, outputs[] = {"y"};
  Result<Model> named = made->with_names(inputs, outputs);
  ASSERT_TRUE(named.ok()) << named.status().message();
  Result<Program> program = named->build();
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::map<std::string, std::string> facts(program->metadata().begin(), program->metadata().end());
  EXPECT_EQ(facts["input.luma"], "luma plane of a picture (nv12) of 9 x 13 pixels, rows without gaps");
  EXPECT_EQ(facts["input.photo.uv"], "chroma (U, V) plane of a picture (nv12) of 9 x 13 pixels, rows without gaps");
  EXPECT_EQ(facts["preprocessing.x"],
            "input nv12, 9x13; matrix bt601_full; output rgb; scale 0.00392156862745098; output_layout nchw");
  EXPECT_EQ(facts.count("input.photo.y"), 0u);
}

TEST(Preprocess, ATakenNameIsRefusedAndAnInnerOneMakesRoom) {
  constexpr const char* kTwo = R"(graph "g" {
    input %x : f32[1,3,4,4]
    input %image : f32[1,3,4,4]
    %"photo.y" = add (%x, %image)
    output "y" %"photo.y"
  })";
  EXPECT_EQ(refusal({}, kTwo), "preprocessing: say which input is the picture, 2 of 'x', 'image' can be");
  EXPECT_EQ(refusal({}, kTwo, "x"), "preprocessing of 'image': another input has the name 'image': give another");
  EXPECT_EQ(refusal({}, kTwo, "z"), "preprocessing: the model has no input 'z', it has 'x', 'image'");
  Result<Model> own = model_of(kTwo).preprocessed({}, "image");
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->inputs()[1].name, "image");
  EXPECT_EQ(own->inputs()[1].type.dtype, DType::kU8);
  Result<Model> inner = model_of(kTwo).preprocessed({.name = "photo", .input = "nv21"}, "x");
  ASSERT_TRUE(inner.ok()) << inner.status().message();
  EXPECT_EQ(inner->inputs()[0].name, "photo.y");
  EXPECT_EQ(inner->inputs()[2].name, "image");
  EXPECT_EQ(refusal({.name = "a\nb"}, kIdentity), "the name of input 0 has a control character");
}

TEST(Preprocess, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal({.name = ""}), "preprocessing: the name of its input is empty");
  EXPECT_EQ(refusal({.input = "yv12"}),
            "preprocessing of 'image': input must be rgb, bgr, rgba, bgra, grey, nv21, nv12 or i420, is 'yv12'");
  EXPECT_EQ(refusal({.size = {4, 13}}),
            "preprocessing of 'image': makes 4 of dimension 2, input 'x' is float32[n,3,9,13]");
  EXPECT_EQ(refusal({.crop_size = {4, 4}, .crop_ratio = 0.5}),
            "preprocessing of 'image': crop_box, crop_size, crop_ratio and crop_to_aspect: one of them, are 2");
  EXPECT_EQ(refusal({.row_stride = -2}),
            "preprocessing of 'image': row_stride is 1 to 16777216 bytes, kDense or kOpen, is -2");
  constexpr const char* kInts = R"(graph "g" { input %x : i32[1,3,4,4] %y = identity (%x) output "y" %y })";
  EXPECT_EQ(
      refusal({}, kInts),
      "preprocessing of 'image': input 'x' is int32[1,3,4,4], can be float32, float16, bfloat16, uint8 or quantised "
      "int8");
  constexpr const char* kBatch =
      R"(graph "g" { symbol n 2..4 input %x : f32[n,3,4,4] %y = identity (%x) output "y" %y })";
  EXPECT_EQ(refusal({.input = "nv21"}, kBatch),
            "preprocessing of 'image': makes 1 of dimension 0, input 'x' is float32[n,3,4,4]");
  constexpr const char* kSquare =
      R"(graph "g" { symbol s 1..99 input %x : f32[1,3,s,s] %y = identity (%x) output "y" %y })";
  EXPECT_EQ(refusal({.size = {4, 5}}, kSquare),
            "preprocessing of 'image': makes 5 of dimension 3, input 'x' is float32[1,3,s,s], where it is another one");
}

TEST(Preprocess, SizesOfSymbolsReachNestedGraphs) {
  constexpr const char* kNested = R"(graph "g" {
    symbol n 1..4
    input %x : f32[n,3,4,4]
    input %c : bool[]
    %y : f32[n,3,4,4] = if (%c, %x) {else_branch=graph "e" { input %a : f32[n,3,4,4] %b : f32[n,3,4,4] = neg (%a) output "b" %b },
      then_branch=graph "t" { input %a : f32[n,3,4,4] %b : f32[n,3,4,4] = relu (%a) output "b" %b }}
    output "y" %y
  })";
  Result<Model> made = model_of(kNested).preprocessed({.input = "nv21"}, "x");
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->text().find("f32[n,"), std::string::npos) << made->text();
  EXPECT_EQ(to_string(made->outputs()[0].type, made->symbols()), "float32[1,3,4,4]");
}

}  // namespace
}  // namespace pinnace::testing
