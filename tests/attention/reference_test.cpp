// The oracle against a naive triple loop and against finite differences of its own forward pass.
#include "attention/reference/reference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "attention/reference/rounding.h"

namespace flashback::reference {
namespace {

double scale_of(const Shape& shape) {
  return 1 / std::sqrt(static_cast<double>(shape.head_dim));
}

// Every sum written out, one element after the other.
Answer<double> naive(const Question& question, const Inputs& in) {
  const auto [b_count, h_count, kv_count, sq, sk, d] = question.shape;
  auto q_at = [&](auto b, auto i, auto h, auto c) { return ((b * sq + i) * h_count + h) * d + c; };
  auto k_at = [&](auto b, auto j, auto h, auto c) { return ((b * sk + j) * kv_count + h) * d + c; };
  Answer<double> a;
  a.out.assign(in.q.size(), 0);
  a.dq.assign(in.q.size(), 0);
  a.dk.assign(in.k.size(), 0);
  a.dv.assign(in.k.size(), 0);
  a.lse.assign(b_count * h_count * sq, -std::numeric_limits<double>::infinity());
  for (std::int64_t b = 0; b < b_count; ++b) {
    for (std::int64_t h = 0; h < h_count; ++h) {
      const std::int64_t kv = h / (h_count / kv_count);
      for (std::int64_t i = 0; i < sq; ++i) {
        std::vector<std::int64_t> keys;
        for (std::int64_t j = 0; j < sk; ++j) {
          const std::int64_t behind = (sq - 1 - i) - (sk - 1 - j);  // by distances from the corner
          if (question.mask.right != kUnlimited && behind > question.mask.right) continue;
          if (question.mask.left != kUnlimited && -behind > question.mask.left) continue;
          keys.push_back(j);
        }
        if (keys.empty()) continue;
        std::vector<double> p(sk), dp(sk);
        double highest = -1e300, sum = 0, delta = 0;
        for (auto j : keys) {
          for (std::int64_t c = 0; c < d; ++c) {
            p[j] += question.scale * in.q[q_at(b, i, h, c)] * in.k[k_at(b, j, kv, c)];
            dp[j] += double{in.dout[q_at(b, i, h, c)]} * in.v[k_at(b, j, kv, c)];
          }
          highest = std::max(highest, p[j]);
        }
        for (auto j : keys) sum += std::exp(p[j] - highest);
        a.lse[(b * h_count + h) * sq + i] = highest + std::log(sum);
        for (auto j : keys) {
          p[j] = std::exp(p[j] - highest) / sum;
          delta += p[j] * dp[j];
        }
        for (auto j : keys) {
          const double ds = question.scale * p[j] * (dp[j] - delta);
          for (std::int64_t c = 0; c < d; ++c) {
            a.out[q_at(b, i, h, c)] += p[j] * in.v[k_at(b, j, kv, c)];
            a.dq[q_at(b, i, h, c)] += ds * in.k[k_at(b, j, kv, c)];
            a.dk[k_at(b, j, kv, c)] += ds * in.q[q_at(b, i, h, c)];
            a.dv[k_at(b, j, kv, c)] += p[j] * in.dout[q_at(b, i, h, c)];
          }
        }
      }
    }
  }
  return a;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, const char* tensor) {
  ASSERT_EQ(got.size(), want.size()) << tensor;
  double largest = 0;
  for (double value : want) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << tensor << " " << i;
    } else {
      ASSERT_NEAR(got[i], want[i], 1e-13 * (1 + largest)) << tensor << " " << i;
    }
  }
}

struct Case {
  Shape shape;
  Mask mask;
  Data data;
};

std::string title(const testing::TestParamInfo<Case>& info) {
  const auto& [s, mask, data] = info.param;
  const std::string window = kind_of(mask) == MaskKind::kWindow
                                 ? fmt::format("_{}_{}", mask.left + 1, mask.right + 1)
                                 : std::string();
  return fmt::format("b{}h{}kv{}q{}k{}d{}_{}{}_{}", s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_k,
                     s.head_dim, name(kind_of(mask)), window, name(data));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const Shape shapes[] = {{1, 1, 1, 1, 1, 64},   {1, 1, 1, 65, 1, 64},  {1, 1, 1, 1, 65, 64},
                          {2, 3, 3, 70, 33, 64}, {1, 4, 2, 33, 130, 8}, {1, 2, 1, 300, 17, 13},
                          {1, 1, 1, 0, 5, 4},    {1, 1, 1, 5, 0, 4}};
  for (const Shape& shape : shapes) {
    for (Mask mask : {Mask::kDense, Mask::kCausal, Mask{0, 0}, Mask{20, kUnlimited}, Mask{3, 40}})
      all.push_back({shape, mask, Data::kNormal});
  }
  for (Data data : {Data::kLow, Data::kHigh, Data::kEqual, Data::kZero, Data::kHeavy}) {
    all.push_back({{1, 2, 2, 70, 90, 64}, Mask::kCausal, data});
  }
  return all;
}

class Reference : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Reference, testing::ValuesIn(cases()), title);

TEST_P(Reference, EqualsTheNaiveLoops) {
  const auto& [shape, mask, data] = GetParam();
  const Question question{shape, mask, scale_of(shape)};
  const Inputs inputs = make_inputs(data, shape, Dtype::kBf16, question.scale, 7);
  const Answer<double> got = exact(question, inputs, 2), want = naive(question, inputs);
  expect_near(got.out, want.out, "out");
  expect_near(got.lse, want.lse, "lse");
  expect_near(got.dq, want.dq, "dq");
  expect_near(got.dk, want.dk, "dk");
  expect_near(got.dv, want.dv, "dv");
}

// The sums of out * dout and of lse * dlse move with an input as its gradient says: central differences.
TEST(Gradients, AreThoseOfTheForwardPass) {
  const Shape shape{.batch = 1, .heads = 2, .kv_heads = 1, .seqlen_q = 9, .seqlen_k = 7, .head_dim = 5};
  for (Mask mask : {Mask::kDense, Mask::kCausal, Mask{2, 1}}) {
    const Question question{shape, mask, 0.4};
    Inputs inputs = make_inputs(Data::kNormal, shape, Dtype::kBf16, question.scale, 3);
    inputs.dlse = make_dlse(2 * 9, 3);
    inputs.sink = make_sink(2, 3);
    const Answer<double> answer = exact(question, inputs);
    auto objective = [&] {
      const Answer<double> moved = exact(question, inputs);
      double sum = 0;
      for (std::size_t i = 0; i < moved.out.size(); ++i) sum += moved.out[i] * inputs.dout[i];
      for (std::size_t i = 0; i < moved.lse.size(); ++i) sum += moved.lse[i] * inputs.dlse[i];
      return sum;
    };
    auto compare = [&](std::vector<float>& input, const std::vector<double>& gradient, const char* tensor) {
      for (std::size_t i = 0; i < input.size(); ++i) {
        const float middle = input[i];
        const float step = 0x1p-10f;
        input[i] = middle + step;
        const double above = objective(), to = input[i];
        input[i] = middle - step;
        const double below = objective(), from = input[i];
        input[i] = middle;
        ASSERT_NEAR((above - below) / (to - from), gradient[i], 1e-5) << tensor << " " << i;
      }
    };
    compare(inputs.q, answer.dq, "dq");
    compare(inputs.k, answer.dk, "dk");
    compare(inputs.v, answer.dv, "dv");
    compare(inputs.sink, answer.dsink, "dsink");
  }
}

// Sequences of a packed problem, with gaps and rows that take no part, are problems of their own.
TEST(Sequences, AreAnsweredEachForItself) {
  const std::vector<Rows> q_rows = {{0, 40}, {45, 0}, {45, 70}, {120, 9}},
                          k_rows = {{0, 33}, {33, 8}, {50, 0}, {50, 90}};
  const Shape all{.batch = 4, .heads = 2, .kv_heads = 1, .seqlen_q = 140, .seqlen_k = 150, .head_dim = 8};
  Question question{.shape = all, .mask = {30, 10}, .scale = 0.3, .q_rows = q_rows, .k_rows = k_rows};
  question.q_packed = question.k_packed = true;
  Shape memory = all;
  memory.batch = 1;
  Inputs inputs = make_inputs(Data::kNormal, memory, Dtype::kBf16, 0.3, 5);
  inputs.dlse = make_dlse(2 * 140, 5);
  inputs.sink = make_sink(2, 5);
  const Answer<double> got = exact(question, inputs);

  Answer<double> want;
  want.out.resize(inputs.q.size());
  want.dq = want.out;
  want.dk.resize(inputs.k.size());
  want.dv = want.dk;
  want.lse.resize(2 * 140);
  want.dsink.resize(2);
  const auto slice = [](const auto& from, const Rows& rows, std::int64_t row) {
    return std::decay_t<decltype(from)>(from.begin() + rows.first * row,
                                        from.begin() + (rows.first + rows.count) * row);
  };
  for (std::size_t i = 0; i < q_rows.size(); ++i) {
    const Rows& q = q_rows[i];
    const Rows& k = k_rows[i];
    Shape shape = all;
    shape.batch = 1;
    shape.seqlen_q = q.count;
    shape.seqlen_k = k.count;
    Inputs part = {slice(inputs.q, q, 16),
                   slice(inputs.k, k, 8),
                   slice(inputs.v, k, 8),
                   slice(inputs.dout, q, 16),
                   {},
                   inputs.sink};
    for (int head = 0; head < 2; ++head) {
      for (std::int64_t row = 0; row < q.count; ++row)
        part.dlse.push_back(inputs.dlse[head * 140 + q.first + row]);
    }
    const Answer<double> one = exact({.shape = shape, .mask = question.mask, .scale = 0.3}, part);
    std::copy(one.out.begin(), one.out.end(), want.out.begin() + q.first * 16);
    std::copy(one.dq.begin(), one.dq.end(), want.dq.begin() + q.first * 16);
    std::copy(one.dk.begin(), one.dk.end(), want.dk.begin() + k.first * 8);
    std::copy(one.dv.begin(), one.dv.end(), want.dv.begin() + k.first * 8);
    for (int head = 0; head < 2; ++head) {
      std::copy_n(one.lse.begin() + head * q.count, q.count, want.lse.begin() + head * 140 + q.first);
      want.dsink[head] += one.dsink[head];
    }
  }
  expect_near(got.out, want.out, "out");
  expect_near(got.lse, want.lse, "lse");
  expect_near(got.dq, want.dq, "dq");
  expect_near(got.dk, want.dk, "dk");
  expect_near(got.dv, want.dv, "dv");
  expect_near(got.dsink, want.dsink, "dsink");
}

TEST(Rows, ThatSeeNoKeyGiveZeroAndMinusInfinity) {
  const Shape shape{.seqlen_q = 200, .seqlen_k = 70};
  const Question question{shape, Mask::kCausal, 0.125};
  const Inputs inputs = make_inputs(Data::kNormal, shape, Dtype::kBf16, question.scale, 1);
  const Answer<double> a = exact(question, inputs);
  const Answer<float> b = sixteen_bit(question, inputs, stored(a.out, Dtype::kBf16), Dtype::kBf16);
  for (std::int64_t row = 0; row < 130; ++row) {
    EXPECT_EQ(a.lse[row], -std::numeric_limits<double>::infinity());
    EXPECT_EQ(b.lse[row], -std::numeric_limits<float>::infinity());
    for (std::int64_t c = 0; c < 64; ++c) {
      EXPECT_EQ(a.out[row * 64 + c], 0);
      EXPECT_EQ(a.dq[row * 64 + c], 0);
      EXPECT_EQ(b.out[row * 64 + c], 0);
      EXPECT_EQ(b.dq[row * 64 + c], 0);
    }
  }
  EXPECT_TRUE(std::isfinite(a.lse[130]));
}

TEST(Threads, DoNotChangeTheAnswer) {
  const Shape shape{.batch = 2, .heads = 3, .kv_heads = 3, .seqlen_q = 400, .seqlen_k = 300};
  const Question question{shape, Mask::kCausal, 0.125};
  const Inputs inputs = make_inputs(Data::kNormal, shape, Dtype::kBf16, question.scale, 1);
  const Answer<double> one = exact(question, inputs, 1), many = exact(question, inputs, 7);
  EXPECT_EQ(one.dq, many.dq);
  EXPECT_EQ(one.dk, many.dk);
  EXPECT_EQ(one.dv, many.dv);
  const std::vector<float> out = stored(one.out, Dtype::kF16);
  const Answer<float> one16 = sixteen_bit(question, inputs, out, Dtype::kF16, 1);
  EXPECT_EQ(one16.dk, sixteen_bit(question, inputs, out, Dtype::kF16, 7).dk);
}

class SixteenBit : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, SixteenBit, testing::Values(Dtype::kBf16, Dtype::kF16),
                         [](const auto& info) { return std::string(name(info.param)); });

// Near the exact answer, by as much as the format resolves, and made of the format's values.
TEST_P(SixteenBit, ErrsByTheResolutionOfItsFormat) {
  const Shape shape{.seqlen_q = 200, .seqlen_k = 150};
  const Question question{shape, Mask::kDense, 0.125};
  const Inputs inputs = make_inputs(Data::kNormal, shape, GetParam(), question.scale, 1);
  const Answer<double> a = exact(question, inputs);
  const Answer<float> b = sixteen_bit(question, inputs, stored(a.out, GetParam()), GetParam());
  const double unit = GetParam() == Dtype::kBf16 ? 0x1p-8 : 0x1p-11;
  auto compare = [&](const std::vector<double>& want, const std::vector<float>& got, const char* tensor) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i], round_to(GetParam(), got[i]));
      error += (got[i] - want[i]) * (got[i] - want[i]);
      size += want[i] * want[i];
    }
    const double relative = std::sqrt(error / size) / unit;
    EXPECT_GT(relative, 0.2) << tensor;
    EXPECT_LT(relative, 8) << tensor;
  };
  compare(a.out, b.out, "out");
  compare(a.dq, b.dq, "dq");
  compare(a.dk, b.dk, "dk");
  compare(a.dv, b.dv, "dv");
}

}  // namespace
}  // namespace flashback::reference
