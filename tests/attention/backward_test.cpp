// The whole way: C API, plan, the three kernels' PTX on the emulator, and the double-precision reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/attention/backward_run.h"

namespace flashback::test {
namespace {

constexpr std::array<std::int64_t, 13> kLengths = {1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 257, 512, 1000};
constexpr Mask kMasks[] = {Mask::kDense, Mask::kCausal};

struct Variant {
  TensorMemory tensor_memory;
  Signal signal;
};
constexpr Variant kVariants[] = {{TensorMemory::kSplit, Signal::kWarp},
                                 {TensorMemory::kSplit, Signal::kCta},
                                 {TensorMemory::kAliased, Signal::kWarp},
                                 {TensorMemory::kAliased, Signal::kCta}};

std::string title(const Variant& variant) {
  return fmt::format("{}_{}", name(variant.tensor_memory), name(variant.signal));
}

flashback_device* emulator() {
  static flashback_device* const device = open_emulator(Arch::kSm100);
  return device;
}

void solve(const Case& c, std::uint64_t seed) {
  SCOPED_TRACE(describe(c));
  const Question16 question = question_of(c, seed);
  expect_right(c, question, run_backward(emulator(), c, question));
}

Case one_head(std::int64_t seqlen_q, std::int64_t seqlen_k, Mask mask, const Variant& variant, Data data) {
  return {.shape = {.seqlen_q = seqlen_q, .seqlen_k = seqlen_k},
          .mask = mask,
          .tensor_memory = variant.tensor_memory,
          .signal = variant.signal,
          .data = data};
}

constexpr Data kData[] = {Data::kNormal, Data::kLow, Data::kHigh, Data::kEqual, Data::kZero, Data::kHeavy};

// Every length in both roles, all pairs: what the command runs by default, with its seed.
class EveryPair : public testing::TestWithParam<std::tuple<Mask, Data>> {};
INSTANTIATE_TEST_SUITE_P(Backward, EveryPair,
                         testing::Combine(testing::ValuesIn(kMasks), testing::ValuesIn(kData)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", name(std::get<0>(info.param)),
                                              name(std::get<1>(info.param)));
                         });

TEST_P(EveryPair, OfLengths) {
  const auto [mask, data] = GetParam();
  for (std::int64_t seqlen_q : kLengths) {
    for (std::int64_t seqlen_k : kLengths) solve(one_head(seqlen_q, seqlen_k, mask, kVariants[0], data), 0);
  }
}

// Every length once in each role: 5 and 13 have no common factor.
class EveryVariant : public testing::TestWithParam<std::tuple<Mask, Variant, Data>> {};
INSTANTIATE_TEST_SUITE_P(Backward, EveryVariant,
                         testing::Combine(testing::ValuesIn(kMasks), testing::ValuesIn(kVariants),
                                          testing::ValuesIn(kData)),
                         [](const auto& info) {
                           return fmt::format("{}_{}_{}", name(std::get<0>(info.param)),
                                              title(std::get<1>(info.param)), name(std::get<2>(info.param)));
                         });

TEST_P(EveryVariant, AndKindOfData) {
  const auto& [mask, variant, data] = GetParam();
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    solve(one_head(kLengths[i], kLengths[(5 * i + 3) % kLengths.size()], mask, variant, data), 0);
  }
}

TEST(Backward, BatchesAndHeads) {
  for (Mask mask : kMasks) {
    for (Layout layout : {Layout::kPacked, Layout::kHeadMajor, Layout::kGaps}) {
      Case c{.shape = {.batch = 2, .heads = 3, .kv_heads = 3, .seqlen_q = 150, .seqlen_k = 200},
             .mask = mask};
      c.layout = layout;
      SCOPED_TRACE(fmt::format("layout {}", static_cast<int>(layout)));
      solve(c, 11);
    }
  }
}

TEST(Backward, RowsThatSeeNoKeyMayComeWithEitherInfinity) {
  for (float lse : {-INFINITY, INFINITY}) {
    Case c = one_head(300, 100, Mask::kCausal, kVariants[0], Data::kNormal);
    c.lse_of_empty_rows = lse;
    const Question16 question = question_of(c, 12);
    const Gradients got = run_backward(emulator(), c, question);
    expect_right(c, question, got);
    for (std::size_t i = 0; i < 200 * 64; ++i) ASSERT_EQ(got.dq[i], 0) << "element " << i;
  }
}

TEST(Backward, ScalesOtherThanTheUsual) {
  for (float scale : {1.0f, 0.01f, -0.125f}) {
    Case c = one_head(140, 130, Mask::kCausal, kVariants[0], Data::kNormal);
    c.scale = scale;
    SCOPED_TRACE(scale);
    solve(c, 13);
  }
}

// As from sum(out): one row of dout that stands for all of them.
TEST(Backward, ARowOfDoutMayStandForAll) {
  Case c{.shape = {.batch = 2, .heads = 2, .kv_heads = 2, .seqlen_q = 140, .seqlen_k = 130}};
  Question16 question = question_of(c, 16);
  std::vector<float>& dout = question.inputs.dout;
  for (std::size_t i = 64; i < dout.size(); ++i) dout[i] = dout[i % 64];
  const Question exact = reference_question(c);
  question.exact = reference::exact(exact, question.inputs);
  question.sixteen =
      sixteen_bit(exact, question.inputs, stored(question.exact.out, Dtype::kBf16), Dtype::kBf16);
  c.one_dout_row = true;
  expect_right(c, question, run_backward(emulator(), c, question));
}

TEST(Backward, AnyThreadMayCall) {
  const Case c = one_head(257, 193, Mask::kCausal, kVariants[0], Data::kNormal);
  const Question16 question = question_of(c, 17);
  const Gradients alone = run_backward(emulator(), c, question);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        const Gradients got = run_backward(emulator(), c, question);
        EXPECT_EQ(got.dq, alone.dq);
        EXPECT_EQ(got.dk, alone.dk);
        EXPECT_EQ(got.dv, alone.dv);
      }
    });
  }
}

// The emulator adds the parts of dQ in one order, so that the variants must agree in every bit. (On a GPU the
// order varies.)
TEST(Backward, VariantsAgreeBitForBit) {
  for (Mask mask : kMasks) {
    Case c{.shape = {.batch = 1, .heads = 2, .kv_heads = 2, .seqlen_q = 321, .seqlen_k = 450}, .mask = mask};
    const Question16 question = question_of(c, 14);
    const Gradients first = run_backward(emulator(), c, question);
    for (const Variant& variant : kVariants) {
      SCOPED_TRACE(title(variant));
      c.tensor_memory = variant.tensor_memory;
      c.signal = variant.signal;
      const Gradients got = run_backward(emulator(), c, question);
      EXPECT_EQ(got.dq, first.dq);
      EXPECT_EQ(got.dk, first.dk);
      EXPECT_EQ(got.dv, first.dv);
    }
  }
}

// What the judge is for: a run whose inputs differ from the reference's in one key row must fail.
TEST(Backward, AWrongRowIsFound) {
  const Case c = one_head(100, 100, Mask::kDense, kVariants[0], Data::kNormal);
  const Question16 question = question_of(c, 15);
  Question16 moved = question;
  for (std::int64_t channel = 0; channel < 64; ++channel) moved.inputs.v[70 * 64 + channel] *= -1;
  const Gradients got = run_backward(emulator(), c, moved);
  const Verdict v = judge(got.dk, question.exact.dk, question.sixteen.dk, {1, 100, 1, 64}, Dtype::kBf16);
  EXPECT_FALSE(v.ok);
}

}  // namespace
}  // namespace flashback::test
