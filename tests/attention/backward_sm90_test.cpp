// The Hopper kernel the whole way: C API, plan, three launches on the emulator, the double-precision
// reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/attention/backward_run.h"

namespace flashback::test {
namespace {

constexpr std::array<std::int64_t, 13> kLengths = {1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 257, 512, 1000};
constexpr Mask kMasks[] = {Mask::kDense, Mask::kCausal};
constexpr Data kData[] = {Data::kNormal, Data::kLow, Data::kHigh, Data::kEqual, Data::kZero, Data::kHeavy};

class BackwardSm90 : public testing::Test {
 protected:
  BackwardSm90() : device_(open_emulator(Arch::kSm90)) {}
  ~BackwardSm90() override { flashback_device_close(device_); }

  void solve(const Case& c, std::uint64_t seed) {
    SCOPED_TRACE(describe(c));
    const Question16 question = question_of(c, seed);
    expect_right(c, question, run_backward(device_, c, question));
  }

  flashback_device* device_;
};

// Every length in both roles, all pairs, with every kind of data.
class BackwardSm90Lengths : public BackwardSm90,
                            public testing::WithParamInterface<std::tuple<Mask, Data>> {};
INSTANTIATE_TEST_SUITE_P(Backward, BackwardSm90Lengths,
                         testing::Combine(testing::ValuesIn(kMasks), testing::ValuesIn(kData)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", name(std::get<0>(info.param)),
                                              name(std::get<1>(info.param)));
                         });

TEST_P(BackwardSm90Lengths, AreRight) {
  const auto [mask, data] = GetParam();
  for (std::int64_t seqlen_q : kLengths) {
    for (std::int64_t seqlen_k : kLengths) {
      solve({.shape = {.seqlen_q = seqlen_q, .seqlen_k = seqlen_k}, .mask = mask, .data = data}, 0);
    }
  }
}

// Sections of heads that do not divide the heads, groups of one to all heads, every layout of tensors.
TEST_F(BackwardSm90, BatchesHeadsAndGroups) {
  for (Mask mask : kMasks) {
    for (std::int64_t kv_heads : {6, 3, 2, 1}) {
      for (Layout layout : {Layout::kPacked, Layout::kHeadMajor, Layout::kGaps}) {
        Case c{.shape = {.batch = 2, .heads = 6, .kv_heads = kv_heads, .seqlen_q = 150, .seqlen_k = 200},
               .mask = mask};
        c.layout = layout;
        SCOPED_TRACE(fmt::format("layout {}", static_cast<int>(layout)));
        solve(c, 11);
      }
    }
  }
}

// More tiles of keys than multiprocessors: CTAs take several, from the counter.
TEST_F(BackwardSm90, CtasTakeSeveralItems) {
  for (Mask mask : kMasks) {
    solve(
        {.shape = {.batch = 5, .heads = 12, .kv_heads = 12, .seqlen_q = 130, .seqlen_k = 300}, .mask = mask},
        12);
  }
}

TEST_F(BackwardSm90, RowsThatSeeNoKeyMayComeWithAnyForward) {
  for (float lse : {-INFINITY, INFINITY}) {
    for (bool nan : {false, true}) {
      Case c{.shape = {.seqlen_q = 300, .seqlen_k = 100}, .mask = Mask::kCausal};
      c.lse_of_empty_rows = lse;
      c.out_of_empty_rows_is_nan = nan;
      const Question16 question = question_of(c, 13);
      const Gradients got = run_backward(device_, c, question);
      expect_right(c, question, got);
      for (std::size_t i = 0; i < 200 * 64; ++i) ASSERT_EQ(got.dq[i], 0) << "element " << i;
    }
  }
}

TEST_F(BackwardSm90, ScalesOtherThanTheUsual) {
  for (float scale : {1.0f, 0.01f, -0.125f}) {
    Case c{.shape = {.seqlen_q = 140, .seqlen_k = 130}, .mask = Mask::kCausal};
    c.scale = scale;
    SCOPED_TRACE(scale);
    solve(c, 14);
  }
}

// The order in which CTAs take tiles and add to dQ follows from nothing but the program.
TEST_F(BackwardSm90, BytesDependOnNothingElse) {
  const Case c{.shape = {.batch = 4, .heads = 12, .kv_heads = 6, .seqlen_q = 200, .seqlen_k = 700},
               .mask = Mask::kCausal};
  const Question16 question = question_of(c, 15);
  const Gradients first = run_backward(device_, c, question);
  for (int threads : {1, 3}) {
    flashback_device* const other = open_emulator(Arch::kSm90, threads);
    const Gradients got = run_backward(other, c, question);
    EXPECT_EQ(got.dq, first.dq) << threads;
    EXPECT_EQ(got.dk, first.dk) << threads;
    EXPECT_EQ(got.dv, first.dv) << threads;
    flashback_device_close(other);
  }
}

TEST_F(BackwardSm90, AWrongRowIsFound) {
  const Case c{.shape = {.seqlen_q = 100, .seqlen_k = 100}};
  const Question16 question = question_of(c, 16);
  Question16 moved = question;
  for (std::int64_t channel = 0; channel < 64; ++channel) moved.inputs.v[70 * 64 + channel] *= -1;
  const Gradients got = run_backward(device_, c, moved);
  const Verdict v = judge(got.dk, question.exact.dk, question.sixteen.dk, {1, 100, 1, 64}, Dtype::kBf16);
  EXPECT_FALSE(v.ok);
}

}  // namespace
}  // namespace flashback::test
