// The operations of detectors through the C interface, against results worked out by hand, and what they refuse.
#include <cmath>

#include "cpp/nnapi/nnapi_operation.h"

namespace {

using namespace nnapi_client;
constexpr int32_t kBboxTransform = 41, kBoxWithNmsLimit = 44, kPostprocessing = 47, kGenerateProposals = 52,
                  kMaxKeypoint = 56, kRoiAlign = 81, kRoiPooling = 82;

/// 4 x 4 elements; the one in row r and column c is 4 r + c.
const Floats kRamp = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

TEST(NnapiDetection, RoiAlignSamplesBetweenElements) {
  // The box is columns and rows 1 to 3: bins of 1, their middles at 1.5 and 2.5. Strides are 2 down and 1 across.
  for (const bool nchw : {false, true}) {
    Operation op;
    op.floats(nchw ? Dims{1, 1, 4, 4} : Dims{1, 4, 4, 1}, kRamp).floats({1, 4}, {1, 2, 3, 6}).ints({1}, {0});
    op.integers({2, 2}).reals({2, 1}).integers({1, 1}).flag(nchw).gives(kTensorFloat32, 4).done(kRoiAlign);
    const Ran ran(op);
    ASSERT_EQ(ran.code, 0);
    EXPECT_EQ(ran.dims(0), nchw ? (Dims{1, 1, 2, 2}) : (Dims{1, 2, 2, 1}));
    EXPECT_EQ(ran.values<float>(0), (Floats{7.5f, 8.5f, 11.5f, 12.5f}));
  }
}

TEST(NnapiDetection, RoiAlignTakesCountsPerDirectionAndTheEdge) {
  // Down 1 sample at 1; across as many as the box is wide, at 0.5, 1.5 and between the last element and itself.
  Operation op;
  op.floats({1, 4, 4, 1}, kRamp).floats({2, 4}, {0, 0, 3, 2, 4, 4, 4, 4}).ints({2}, {0, 0});
  op.integers({1, 1}).reals({1, 1}).integers({1, 0}).flag(false).gives(kTensorFloat32, 4).done(kRoiAlign);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  // 4 + (0.5 + 1.5 + 2.5) / 3; an empty box in the corner is one element wide, and sees the corner.
  EXPECT_EQ(ran.values<float>(0), (Floats{5.5f, 15}));
}

TEST(NnapiDetection, RoiAlignQuantised) {
  Operation op;
  op.q8({1, 2, 2, 1}, {2, 4, 6, 8}, 0.5f).q16({1, 4}, {0, 0, 16, 16}).ints({1}, {0});
  op.integers({1, 1}).reals({1, 1}).integers({1, 1}).flag(false).gives(kTensorQuant8, 4, 0.25f).done(kRoiAlign);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  // The middle of the box is at (1, 1), where floor is the last element: 8 * 0.5, stored by quarters.
  EXPECT_EQ(ran.values<uint8_t>(0), (std::vector<uint8_t>{16}));
}

TEST(NnapiDetection, RoiPoolingTakesTheLargestOfEachBin) {
  for (const bool nchw : {false, true}) {
    Operation op;
    op.floats(nchw ? Dims{1, 1, 4, 4} : Dims{1, 4, 4, 1}, kRamp).floats({2, 4}, {1, 2, 2, 4, 0, 0, 3, 2});
    op.ints({2}, {0, 0}).integers({1, 2}).reals({2, 1}).flag(nchw).gives(kTensorFloat32, 4).done(kRoiPooling);
    const Ran ran(op);
    ASSERT_EQ(ran.code, 0);
    // Rows 1 to 2, columns 1 and 2; rows 0 to 1, columns 0 to 1 and 2 to 3.
    EXPECT_EQ(ran.values<float>(0), (Floats{9, 10, 5, 7}));
  }
}

TEST(NnapiDetection, RegionsOutsideTheImageFail) {
  const std::vector<Floats> boxes = {{0, 0, 5, 1}, {0, 0, 1, 5}, {-1, 0, 1, 1},
                                     {2, 0, 1, 1}, {0, 2, 1, 1}, {0, 0, NAN, 1}};
  for (const int32_t code : {kRoiAlign, kRoiPooling}) {
    const auto run = [&](const Floats& box, int32_t image, float stride) {
      Operation op;
      op.floats({1, 4, 4, 1}, kRamp).floats({1, 4}, box).ints({1}, {image}).integers({1, 1}).reals({stride, 1});
      if (code == kRoiAlign) op.integers({1, 1});
      op.flag(false).gives(kTensorFloat32, 4).done(code);
      return Ran(op).code;
    };
    EXPECT_EQ(run({0, 0, 4, 4}, 0, 1), 0);
    for (const Floats& box : boxes) EXPECT_EQ(run(box, 0, 1), ANEURALNETWORKS_OP_FAILED);
    for (const int32_t image : {-1, 1}) EXPECT_EQ(run({0, 0, 4, 4}, image, 1), ANEURALNETWORKS_OP_FAILED);
    for (const float stride : {0.0f, -1.0f, NAN}) EXPECT_EQ(run({0, 0, 4, 4}, 0, stride), ANEURALNETWORKS_OP_FAILED);
  }
}

TEST(NnapiDetection, BoxesMoveByTheirOwnSizeAndAreCut) {
  // 20 wide, 40 high: half a width to the right and a quarter height up; the second class beyond the right edge.
  Operation op;
  op.floats({1, 4}, {10, 20, 30, 60}).floats({1, 8}, {0.5f, -0.25f, 0, 0, 3, 0, 0, 0}).ints({1}, {0});
  op.floats({1, 2}, {100, 60}).gives(kTensorFloat32, 2).done(kBboxTransform);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(ran.values<float>(0), (Floats{20, 10, 40, 50, 60, 20, 60, 60}));
}

TEST(NnapiDetection, BoxesMoveQuantised) {
  // In eighths; deltas in sixteenths: 8 is half a width.
  Operation op;
  op.q16({1, 4}, {80, 160, 240, 480}).q8({1, 4}, {8, 0, 0, 0}, 0.0625f).ints({1}, {0});
  op.q16({1, 2}, {800, 800}).gives(kTensorQuant16, 2, 0.125f).done(kBboxTransform);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(ran.values<uint16_t>(0), (std::vector<uint16_t>{160, 160, 320, 480}));
}

/// Three boxes of one image and one class: the second overlaps the first by 9/11, the third none.
void three_boxes(Operation& op, const Floats& scores) {
  op.floats({3, 2}, {0, scores[0], 0, scores[1], 0, scores[2]});
  op.floats({3, 8}, {0, 0, 0, 0, 0, 0, 10, 10, 0, 0, 0, 0, 1, 0, 11, 10, 0, 0, 0, 0, 50, 0, 60, 10});
  op.ints({3}, {4, 4, 4});
}
void nms_outputs(Operation& op) {
  op.gives(kTensorFloat32, 1).gives(kTensorFloat32, 2).gives(kTensorInt32, 1).gives(kTensorInt32, 1);
}

TEST(NnapiDetection, SuppressionByEachKernel) {
  const std::vector<Floats> scores = {
      {0.75f, 0.5f}, {0.75f, 0.5f, 0.5f * 2 / 11}, {0.75f, 0.5f, 0.5f * std::exp(-2 * 81.0f / 121)}};
  for (int32_t kernel = 0; kernel < 3; ++kernel) {
    Operation op;
    three_boxes(op, {0.75f, 0.5f, 0.5f});
    op.reals({0.25f}).integers({-1, kernel}).reals({0.5f, 0.5f, 0.01f});
    nms_outputs(op);
    op.done(kBoxWithNmsLimit);
    const Ran ran(op);
    ASSERT_EQ(ran.code, 0);
    const Floats& want = scores[static_cast<size_t>(kernel)];
    const Floats got = ran.values<float>(0);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6f);
    const Floats boxes = ran.values<float>(1);
    EXPECT_EQ(Floats(boxes.begin() + 4, boxes.begin() + 8), (Floats{50, 0, 60, 10}));
    EXPECT_EQ(ran.values<int32_t>(2), Ints(want.size(), 1));
    EXPECT_EQ(ran.values<int32_t>(3), Ints(want.size(), 4));
  }
}

TEST(NnapiDetection, SuppressionRefusesBadBoxesAndKernels) {
  const auto run = [](float right, int32_t kernel) {
    Operation op;
    op.floats({1, 2}, {0, 1}).floats({1, 8}, {0, 0, 1, 1, 0, 0, right, 1}).ints({1}, {0});
    op.reals({0}).integers({-1, kernel}).reals({0.5f, 0.5f, 0});
    nms_outputs(op);
    op.done(kBoxWithNmsLimit);
    return Ran(op).code;
  };
  EXPECT_EQ(run(1, 0), 0);
  EXPECT_EQ(run(-1, 0), ANEURALNETWORKS_OP_FAILED);
  EXPECT_EQ(run(NAN, 0), ANEURALNETWORKS_OP_FAILED);
  EXPECT_EQ(run(1, 3), ANEURALNETWORKS_OP_FAILED);
}

TEST(NnapiDetection, WhatFollowsWhenNothingIsFoundRunsOnNothing) {
  Operation op;
  three_boxes(op, {0.1f, 0.1f, 0.1f});
  op.reals({0.25f}).integers({-1, 0}).reals({0.5f, 0.5f, 0.01f});
  nms_outputs(op);
  op.add(kBoxWithNmsLimit, op.in, op.out);
  const std::vector<uint32_t> found = op.out;
  Operation& next = op;
  next.in.clear();
  next.out.clear();
  next.floats({1, 4, 4, 1}, kRamp);
  next.in.insert(next.in.end(), {found[1], found[3]});
  next.integers({2, 2}).reals({1, 1}).integers({1, 1}).flag(false).gives(kTensorFloat32, 4);
  next.add(kRoiAlign, next.in, next.out);
  next.out.insert(next.out.end(), {found[0], found[2]});
  next.finish({next.input}, next.out);
  const Ran ran(next);
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(ran.dims(0), (Dims{0, 2, 2, 1}));
  EXPECT_EQ(ran.dims(1), (Dims{0}));
  EXPECT_EQ(ran.dims(2), (Dims{0}));
}

TEST(NnapiDetection, ProposalsOfBothLayouts) {
  // Two places 16 apart, two anchors of 8 x 8 and 4 x 4: scores 1 to 4 by place and anchor, no deltas. The small anchor
  // overlaps the large one by a quarter, so all four stay.
  for (const bool nchw : {false, true}) {
    Operation op;
    op.floats(nchw ? Dims{1, 2, 1, 2} : Dims{1, 1, 2, 2}, nchw ? Floats{1, 3, 2, 4} : Floats{1, 2, 3, 4});
    op.floats(nchw ? Dims{1, 8, 1, 2} : Dims{1, 1, 2, 8}, Floats(16, 0.0f));
    op.floats({2, 4}, {0, 0, 8, 8, 0, 0, 4, 4}).floats({1, 2}, {32, 32});
    op.reals({16, 16}).integers({3, 2}).reals({0.5f, 4}).flag(nchw);
    op.gives(kTensorFloat32, 1).gives(kTensorFloat32, 2).gives(kTensorInt32, 1).done(kGenerateProposals);
    const Ran ran(op);
    ASSERT_EQ(ran.code, 0);
    // The best three are 4, 3 and 2; those of 4 x 4 are not larger than 4.
    EXPECT_EQ(ran.values<float>(0), (Floats{3}));
    EXPECT_EQ(ran.values<float>(1), (Floats{16, 0, 24, 8}));
    EXPECT_EQ(ran.values<int32_t>(2), (Ints{0}));
  }
}

/// Two anchors of 10 x 10 that overlap by 9/11, two classes and the background.
void two_anchors(Operation& op) {
  op.floats({1, 2, 3}, {0, 0.75f, 0.25f, 0, 0.125f, 0.5f}).floats({1, 2, 4}, Floats(8, 0.0f));
  op.floats({2, 4}, {5, 5, 10, 10, 6, 5, 10, 10}).reals({10, 10, 5, 5});
}
void postprocessing_outputs(Operation& op) {
  op.gives(kTensorFloat32, 2).gives(kTensorFloat32, 3).gives(kTensorInt32, 2).gives(kTensorInt32, 1);
}

TEST(NnapiDetection, PostprocessingSuppressesAnchorsOrClasses) {
  for (const bool regular : {false, true}) {
    Operation op;
    two_anchors(op);
    op.flag(regular).integers({2, 1, 1}).reals({0.0625f, 0.5f}).flag(true);
    postprocessing_outputs(op);
    op.done(kPostprocessing);
    const Ran ran(op);
    ASSERT_EQ(ran.code, 0);
    // By anchors, the first suppresses the second; by classes, each is the best of one.
    EXPECT_EQ(ran.values<float>(0), regular ? (Floats{0.75f, 0.5f}) : (Floats{0.75f, 0}));
    EXPECT_EQ(ran.values<float>(1),
              regular ? (Floats{0, 0, 10, 10, 1, 0, 11, 10}) : (Floats{0, 0, 10, 10, 0, 0, 0, 0}));
    EXPECT_EQ(ran.values<int32_t>(2), regular ? (Ints{1, 2}) : (Ints{1, 0}));
    EXPECT_EQ(ran.values<int32_t>(3), (Ints{regular ? 2 : 1}));
  }
}

TEST(NnapiDetection, PostprocessingRefusesWhatMakesNoSense) {
  const auto run = [](int32_t most, int32_t classes, float score, float overlap) {
    Operation op;
    two_anchors(op);
    op.flag(false).integers({most, classes, 1}).reals({score, overlap}).flag(false);
    postprocessing_outputs(op);
    op.done(kPostprocessing);
    return Ran(op).code;
  };
  EXPECT_EQ(run(1, 1, 0, 0), 0);
  EXPECT_EQ(run(0, 1, 0, 0), ANEURALNETWORKS_OP_FAILED);
  EXPECT_EQ(run(1, 0, 0, 0), ANEURALNETWORKS_OP_FAILED);
  EXPECT_EQ(run(1, 1, -1, 0), ANEURALNETWORKS_OP_FAILED);
  EXPECT_EQ(run(1, 1, 0, NAN), ANEURALNETWORKS_OP_FAILED);
}

TEST(NnapiDetection, KeypointsLieBetweenElements) {
  // Across 3 + x - 2 x^2: highest at x = 1/4, by 1/8. The box is twice as high as wide, from (10, 20).
  const Floats map = {-4, -1, -2, 0, 3, 2, -4, -1, -2};
  for (const bool nchw : {false, true}) {
    Operation op;
    op.floats(nchw ? Dims{1, 1, 3, 3} : Dims{1, 3, 3, 1}, map).floats({1, 4}, {10, 20, 13, 26});
    op.flag(nchw).gives(kTensorFloat32, 2).gives(kTensorFloat32, 3).done(kMaxKeypoint);
    const Ran ran(op);
    ASSERT_EQ(ran.code, 0);
    EXPECT_EQ(ran.values<float>(0), (Floats{3.125f}));
    EXPECT_EQ(ran.dims(1), (Dims{1, 1, 2}));
    EXPECT_EQ(ran.values<float>(1), (Floats{11.75f, 23}));
  }
}

TEST(NnapiDetection, KeypointsQuantised) {
  Operation op;
  op.q8({1, 2, 2, 1}, {0, 0, 9, 0}, 0.5f).q16({1, 4}, {0, 0, 32, 64}).flag(false);
  op.gives(kTensorQuant8, 2, 0.25f).gives(kTensorQuant16, 3, 0.125f).done(kMaxKeypoint);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  // 4.5 by quarters, in the middle of the lower left quarter: (1, 6) in eighths.
  EXPECT_EQ(ran.values<uint8_t>(0), (std::vector<uint8_t>{18}));
  EXPECT_EQ(ran.values<uint16_t>(1), (std::vector<uint16_t>{8, 48}));
}

}  // namespace
