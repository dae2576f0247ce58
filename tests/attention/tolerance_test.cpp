// The judge must let right gradients pass and stop wrong ones, each for its own reason.
#include "attention/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/reference/reference.h"
#include "attention/reference/rounding.h"

namespace flashback {
namespace {

using namespace reference;

constexpr Extent kExtent{.batch = 2, .rows = 130, .heads = 2, .channels = 64};

struct Gradient {
  std::vector<float> g;  // the exact one, rounded once
  std::vector<double> ref;
  std::vector<float> ref16;

  Gradient() {
    const Shape shape{.batch = 2, .heads = 2, .kv_heads = 2, .seqlen_q = 130, .seqlen_k = 90};
    const Question question{shape, Mask::kDense, 0.125};
    const Inputs inputs = make_inputs(Data::kNormal, shape, Dtype::kBf16, question.scale, 5);
    const Answer<double> answer = exact(question, inputs);
    ref = answer.dq;
    ref16 = sixteen_bit(question, inputs, stored(answer.out, Dtype::kBf16), Dtype::kBf16).dq;
    for (double value : ref) g.push_back(round_to(Dtype::kBf16, static_cast<float>(value)));
  }
  Verdict verdict() const { return judge(g, ref, ref16, kExtent, Dtype::kBf16); }
  // Moves rows [from, to) by less than the limit of an element.
  void disturb(std::int64_t b, std::int64_t h, std::int64_t from, std::int64_t to) {
    const float step = static_cast<float>(0.8 * verdict().limit);
    for (std::int64_t row = from; row < to; ++row) {
      for (std::int64_t c = 0; c < kExtent.channels; ++c) {
        g[at(b, row, h, c)] = static_cast<float>(ref[at(b, row, h, c)]) + (c % 2 ? step : -step);
      }
    }
  }
  std::size_t at(std::int64_t b, std::int64_t r, std::int64_t h, std::int64_t c) const {
    return ((b * kExtent.rows + r) * kExtent.heads + h) * kExtent.channels + c;
  }
};

TEST(Tolerance, TheExactAnswerRoundedOncePasses) {
  const Verdict v = Gradient().verdict();
  EXPECT_TRUE(v.ok) << v.sentence;
  EXPECT_LT(v.max_abs, v.limit);
  EXPECT_LT(v.block_ratio, 0.5);
  EXPECT_GT(v.rel, 0);
  EXPECT_LT(v.rel, 0x1p-8);
}

TEST(Tolerance, TheSixteenBitAnswerPasses) {
  Gradient t;
  t.g = t.ref16;
  const Verdict v = t.verdict();
  EXPECT_TRUE(v.ok) << v.sentence;
  EXPECT_LE(v.block_ratio, 0.5);
}

// The limit by hand: 2 * 0.25 + 2 * 2^-8, since 1 + 0.3 is 1.296875 in bf16, and that less 0.3 is 1 - 2^-8.
TEST(Tolerance, TheLimitIsTheRule) {
  const Extent one{1, 1, 1, 1};
  const double ref[] = {1};
  const float ref16[] = {1.25f}, g[] = {1.5f}, on[] = {1.5078125f}, beyond[] = {1.515625f};
  const Verdict v = judge(g, ref, ref16, one, Dtype::kBf16);
  EXPECT_EQ(v.limit, 0.5078125);
  EXPECT_TRUE(v.ok);
  EXPECT_EQ(v.max_abs, 0.5);
  EXPECT_EQ(v.rel, 0.5);
  EXPECT_TRUE(judge(on, ref, ref16, one, Dtype::kBf16).ok);
  EXPECT_FALSE(judge(beyond, ref, ref16, one, Dtype::kBf16).ok);
}

// 0 + 0.3 is 0.30078125 in bf16; less 0.3 it is 0.00078125, in bf16 0.0007820129; twice that is the floor.
TEST(Tolerance, TheFloorIsEvaluatedInTheFormat) {
  const Extent one{1, 1, 1, 1};
  const double ref[] = {0};
  const float zero[] = {0};
  EXPECT_FLOAT_EQ(judge(zero, ref, zero, one, Dtype::kBf16).limit, 2 * 0.0007820129f);
  EXPECT_LT(judge(zero, ref, zero, one, Dtype::kF16).limit, 2e-4);
}

TEST(Tolerance, OneWrongElementFailsAndIsNamed) {
  Gradient t;
  const std::size_t wrong = t.at(1, 100, 0, 17);
  t.g[wrong] = static_cast<float>(t.ref[wrong] + 1.01 * t.verdict().limit);
  const Verdict v = t.verdict();
  EXPECT_FALSE(v.ok);
  EXPECT_EQ(v.worst, (std::array<std::int64_t, 4>{1, 100, 0, 17}));
  EXPECT_NE(v.sentence.find("batch 1, row 100, head 0, channel 17"), std::string::npos) << v.sentence;
}

// A small error everywhere in one block stays below the limit of an element and is found in the block.
TEST(Tolerance, ABlockThatIsWrongAsAWholeFails) {
  Gradient t;
  t.disturb(1, 1, 0, 64);
  const Verdict v = t.verdict();
  EXPECT_LT(v.max_abs, v.limit);
  EXPECT_FALSE(v.ok);
  EXPECT_GT(v.block_ratio, 1);
  EXPECT_EQ(v.worst_block, (std::array<std::int64_t, 4>{1, 1, 0, 64}));
  EXPECT_NE(v.sentence.find("rows 0 to 63 of batch 1, head 1"), std::string::npos) << v.sentence;
}

// 130 rows are two blocks: the last two rows belong to the second.
TEST(Tolerance, TheLastRowsCount) {
  Gradient t;
  t.disturb(0, 0, 96, 130);
  const Verdict v = t.verdict();
  EXPECT_LT(v.max_abs, v.limit);
  EXPECT_FALSE(v.ok);
  EXPECT_EQ(v.worst_block, (std::array<std::int64_t, 4>{0, 0, 64, 130}));
}

TEST(Tolerance, NanAndInfinityFailAnywhere) {
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Gradient t;
    t.g[t.at(0, 3, 1, 2)] = bad;
    const Verdict v = t.verdict();
    EXPECT_FALSE(v.ok);
    EXPECT_EQ(v.worst, (std::array<std::int64_t, 4>{0, 3, 1, 2}));
    EXPECT_NE(v.sentence, "");
  }
}

TEST(Tolerance, ZerosWhereTheGradientIsNotFail) {
  Gradient t;
  std::fill(t.g.begin(), t.g.end(), 0.0f);
  EXPECT_FALSE(t.verdict().ok);
}

// As a layer in training: everything 2^-17 times smaller, so that the floor of unit size would hide all of
// it.
TEST(Tolerance, TheFloorGoesWithTheSizeOfDout) {
  const double unit = 0x1p-17;
  Gradient t;
  const Verdict large = t.verdict();
  for (double& value : t.ref) value *= unit;
  for (float& value : t.ref16) value *= static_cast<float>(unit);
  for (float& value : t.g) value *= static_cast<float>(unit);
  const Verdict small = judge(t.g, t.ref, t.ref16, kExtent, Dtype::kBf16, unit);
  EXPECT_TRUE(small.ok) << small.sentence;
  EXPECT_DOUBLE_EQ(small.limit, large.limit * unit);
  EXPECT_DOUBLE_EQ(small.block_ratio, large.block_ratio);

  std::fill(t.g.begin(), t.g.end(), 0.0f);
  EXPECT_FALSE(judge(t.g, t.ref, t.ref16, kExtent, Dtype::kBf16, unit).ok);
}

TEST(Tolerance, TheUnitIsThePowerOfTwoNearTheRootMeanSquare) {
  const float one[] = {0.9f, -1.1f}, small[] = {9e-6f, -1e-5f}, large[] = {100.0f, 0.0f}, zero[] = {0.0f};
  EXPECT_EQ(unit_of(one), 1);
  EXPECT_EQ(unit_of(small), 0x1p-17);
  EXPECT_EQ(unit_of(large), 1);
  EXPECT_EQ(unit_of(zero), 1);
}

TEST(Tolerance, SizesThatDifferFail) {
  Gradient t;
  t.g.pop_back();
  EXPECT_FALSE(t.verdict().ok);
  EXPECT_NE(t.verdict().sentence, "");
}

}  // namespace
}  // namespace flashback
