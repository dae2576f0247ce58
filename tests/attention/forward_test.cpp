// The forward kernels the whole way: C API, plan, launches on the emulator, the double-precision reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/attention/forward_run.h"

namespace flashback::test {
namespace {

// Around the rows of a warpgroup (64, on sm100 128), the 128 keys of a tile, the 192 or 256 queries of a CTA.
constexpr std::array<std::int64_t, 12> kLengths = {1, 2, 63, 65, 127, 128, 129, 191, 193, 256, 257, 500};
constexpr Data kData[] = {Data::kNormal, Data::kLow, Data::kHigh, Data::kEqual, Data::kZero, Data::kHeavy};

class Forward : public testing::TestWithParam<Arch> {
 protected:
  Forward() : device_(open_emulator(GetParam())) {}
  ~Forward() override { flashback_device_close(device_); }

  void solve(const Case& c, std::uint64_t seed) {
    SCOPED_TRACE(describe(c));
    const Question16 question = question_of(c, seed);
    expect_right(c, question, run_forward(device_, c, question));
  }

  flashback_device* device_;
};

// Every length in both roles, all pairs.
TEST_P(Forward, Lengths) {
  for (Mask mask : {Mask::kDense, Mask::kCausal}) {
    for (std::int64_t seqlen_q : kLengths) {
      for (std::int64_t seqlen_k : kLengths)
        solve({.shape = {.seqlen_q = seqlen_q, .seqlen_k = seqlen_k}, .mask = mask}, 0);
    }
  }
}

TEST_P(Forward, EveryKindOfData) {
  for (Mask mask : {Mask::kDense, Mask::kCausal}) {
    for (Data data : kData) {
      for (Dtype dtype : {Dtype::kBf16, Dtype::kF16}) {
        for (std::int64_t head_dim : {64, 128}) {
          Case c{.shape = {.seqlen_q = 200, .seqlen_k = 700, .head_dim = head_dim}, .mask = mask};
          c.data = data;
          c.dtype = dtype;
          solve(c, 1);
        }
      }
    }
  }
}

// Multiples of 8 are filled up with zeros; channels after them are not written.
TEST_P(Forward, HeadDims) {
  for (std::int64_t head_dim : {8, 24, 56, 72, 96, 120, 128}) {
    for (Mask mask : {Mask::kDense, Mask::kCausal, Mask{100, 20}}) {
      Case c{.shape = {.heads = 2, .kv_heads = 1, .seqlen_q = 150, .seqlen_k = 270, .head_dim = head_dim},
             .mask = mask};
      c.layout = Layout::kGaps;
      solve(c, 2);
    }
  }
}

TEST_P(Forward, BatchesHeadsGroupsAndLayouts) {
  for (Mask mask : {Mask::kDense, Mask::kCausal}) {
    for (std::int64_t kv_heads : {6, 3, 1}) {
      for (Layout layout : {Layout::kPacked, Layout::kHeadMajor, Layout::kGaps}) {
        Case c{.shape = {.batch = 2, .heads = 6, .kv_heads = kv_heads, .seqlen_q = 150, .seqlen_k = 200},
               .mask = mask};
        c.layout = layout;
        SCOPED_TRACE(fmt::format("layout {}", static_cast<int>(layout)));
        solve(c, 3);
      }
    }
  }
}

// More tiles of queries than multiprocessors: CTAs take several, from the counter, and each of its stages
// twice.
TEST_P(Forward, CtasTakeSeveralItems) {
  for (Mask mask : {Mask::kDense, Mask::kCausal}) {
    solve(
        {.shape = {.batch = 5, .heads = 40, .kv_heads = 20, .seqlen_q = 400, .seqlen_k = 130}, .mask = mask},
        4);
  }
}

TEST_P(Forward, Windows) {
  for (const Mask& mask : {Mask{0, 0}, Mask{5, 5}, Mask{64, 0}, Mask{200, kUnlimited}, Mask{kUnlimited, 70},
                           Mask{0, 300}, Mask{130, 130}, Mask{1000, 1000}}) {
    for (const auto& [seqlen_q, seqlen_k] : {std::pair{500, 500}, {130, 600}, {600, 130}}) {
      solve({.shape = {.seqlen_q = seqlen_q, .seqlen_k = seqlen_k}, .mask = mask}, 5);
    }
  }
}

// Rows that see no key, with and without a sink.
TEST_P(Forward, EmptyRows) {
  for (bool sink : {false, true}) {
    for (const auto& [seqlen_q, seqlen_k] : {std::pair{300, 100}, {400, 1}, {100, 0}}) {
      Case c{.shape = {.batch = 2, .heads = 2, .kv_heads = 2, .seqlen_q = seqlen_q, .seqlen_k = seqlen_k},
             .mask = Mask::kCausal};
      c.sink = sink;
      solve(c, 6);
    }
  }
}

TEST_P(Forward, NothingToDo) {
  solve({.shape = {.batch = 0, .seqlen_q = 10, .seqlen_k = 10}}, 7);
  solve({.shape = {.seqlen_q = 0, .seqlen_k = 10}}, 7);
}

// A sink far above all scores, far below, and among them.
TEST_P(Forward, Sinks) {
  for (Data data : {Data::kNormal, Data::kLow, Data::kHigh}) {
    for (Mask mask : {Mask::kDense, Mask::kCausal}) {
      Case c{.shape = {.heads = 4, .kv_heads = 2, .seqlen_q = 200, .seqlen_k = 150}, .mask = mask};
      c.sink = true;
      c.data = data;
      solve(c, 8);
    }
  }
}

// Packed, padded and both; sequences without rows of one side; rows of no sequence hold NaN.
TEST_P(Forward, RaggedSequences) {
  for (Mask mask : {Mask::kDense, Mask::kCausal, Mask{50, 10}}) {
    for (bool leave : {false, true}) {
      for (bool sink : {false, true}) {
        Case c{.shape = {.batch = 4, .heads = 2, .kv_heads = 1, .seqlen_q = 500, .seqlen_k = 600},
               .mask = mask};
        c.leave_unused_rows = leave;
        c.sink = sink;
        c.cu_q = {0, 100, 100, 293, 480};
        c.cu_k = {0, 70, 200, 200, 590};
        solve(c, 9);
        c.used_q = {90, 0, 193, 150};
        c.used_k = {70, 1, 0, 333};
        solve(c, 10);
        c.cu_q.clear();
        c.shape.seqlen_q = 200;
        solve(c, 11);
        c.cu_k.clear();
        c.shape.seqlen_k = 340;
        solve(c, 12);
      }
    }
  }
}

TEST_P(Forward, ScalesOtherThanTheUsual) {
  for (float scale : {1.0f, 0.01f, -0.125f}) {
    for (std::int64_t head_dim : {64, 128}) {
      Case c{.shape = {.seqlen_q = 140, .seqlen_k = 130, .head_dim = head_dim}, .mask = Mask::kCausal};
      c.scale = scale;
      SCOPED_TRACE(scale);
      solve(c, 13);
    }
  }
}

TEST_P(Forward, LseMayBeLeftOut) {
  Case c{.shape = {.heads = 2, .kv_heads = 2, .seqlen_q = 250, .seqlen_k = 130}, .mask = Mask::kCausal};
  const Question16 question = question_of(c, 14);
  const Outputs with = run_forward(device_, c, question), without = run_forward(device_, c, question, false);
  EXPECT_EQ(without.out, with.out);
  for (float x : without.lse) ASSERT_TRUE(std::isnan(x));
}

// The bytes follow from the problem alone.
TEST_P(Forward, BytesDependOnNothingElse) {
  const Case c{.shape = {.batch = 4, .heads = 12, .kv_heads = 6, .seqlen_q = 700, .seqlen_k = 200},
               .mask = Mask::kCausal};
  const Question16 question = question_of(c, 15);
  const Outputs first = run_forward(device_, c, question);
  for (int threads : {1, 3}) {
    flashback_device* const other = open_emulator(GetParam(), threads);
    const Outputs got = run_forward(other, c, question);
    EXPECT_EQ(got.out, first.out) << threads;
    flashback_device_close(other);
  }
}

TEST_P(Forward, AWrongRowIsFound) {
  const Case c{.shape = {.seqlen_q = 100, .seqlen_k = 100}};
  const Question16 question = question_of(c, 16);
  Question16 moved = question;
  for (std::int64_t channel = 0; channel < 64; ++channel) moved.inputs.v[70 * 64 + channel] *= -1;
  const Outputs got = run_forward(device_, c, moved);
  const Verdict v = judge(got.out, question.exact.out, question.sixteen.out, {1, 100, 1, 64}, Dtype::kBf16);
  EXPECT_FALSE(v.ok);
}

INSTANTIATE_TEST_SUITE_P(, Forward, testing::Values(Arch::kSm100, Arch::kSm90),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace flashback::test
