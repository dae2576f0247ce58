// The table of cases: what users of such libraries met, the published sweep scaled down, and lengths that are
// awkward. A declaration is a problem; it is solved in the default and in the deterministic mode, with
// everything around it poisoned, and judged against double precision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tests/attention/backward_run.h"

namespace flashback::test {
namespace {

struct Declared {
  std::string name;
  Case c;
};

void PrintTo(const Declared& declared, std::ostream* out) {
  *out << declared.name;
}

// Where the cases are solved. The second program of this file, backward_cases_hardware_test, has a Hopper
// GPU.
#ifdef FLASHBACK_CASES_ON_GPU
const std::string kDevices[] = {"gpu"};
#else
const std::string kDevices[] = {"sm100", "sm90"};
#endif

// Null where there is no GPU.
flashback_device* device_named(const std::string& name) {
  static std::map<std::string, flashback_device*> devices;
  const auto [found, missing] = devices.try_emplace(name, nullptr);
  flashback_device*& device = found->second;
  if (!missing) return device;
  flashback_message message;
  if (name == "gpu") {
    flashback_device_cuda(0, &device, &message);
  } else {
    check(flashback_device_emulator(name.c_str(), 0, &device, &message), message);
  }
  return device;
}

constexpr Mask kLocal = {1024, 0};

Case dense(Shape shape) {
  return {.shape = shape, .scale = 1 / std::sqrt(static_cast<float>(shape.head_dim))};
}
Case with(Case c, Mask mask) {
  c.mask = mask;
  return c;
}
Case with(Case c, Dtype dtype) {
  c.dtype = dtype;
  return c;
}
Case with(Case c, Data data) {
  c.data = data;
  return c;
}

// Packed sequences of these lengths, with `tail` rows more at the end.
Case packed(Shape shape, const std::vector<std::int32_t>& q, const std::vector<std::int32_t>& k,
            std::int32_t tail = 0) {
  const auto offsets = [](const std::vector<std::int32_t>& lengths) {
    std::vector<std::int32_t> sums = {0};
    for (std::int32_t length : lengths) sums.push_back(sums.back() + length);
    return sums;
  };
  shape.batch = static_cast<std::int64_t>(q.size());
  Case c = dense(shape);
  c.cu_q = offsets(q);
  c.cu_k = offsets(k);
  c.shape.seqlen_q = c.cu_q.back() + tail;
  c.shape.seqlen_k = c.cu_k.back() + tail;
  return c;
}

// By the ids under which the reports are known: A extreme scores, B rows without keys, C variable lengths,
// D index widths, E layouts, G determinism, H heads and masks, I gradients of more than q, k, v.
std::vector<Declared> reports() {
  std::vector<Declared> all;
  const auto add = [&](const char* name, const Case& c) { all.push_back({name, c}); };
  const Case square = dense({1, 2, 2, 256, 256, 64});

  add("A1_one_key_low_score", with(with(dense({1, 1, 1, 1, 1, 16}), Dtype::kF16), Data::kLow));
  add("A2_packed_causal_few_keys",
      with(with(packed({1, 1, 1, 1, 1, 32}, {76, 34, 146}, {1, 1, 1}), Dtype::kF16), Mask::kCausal));
  add("A3_scaled_inputs_fp16",
      with(with(with(dense({1, 1, 1, 1024, 1024, 128}), Dtype::kF16), Mask::kCausal), Data::kHeavy));
  add("A6_two_rows", with(dense({1, 1, 1, 2, 2, 64}), Data::kLow));
  add("A11_logits_of_100", with(square, Data::kHigh));
  add("A11_logits_of_minus_100", with(square, Data::kLow));
  add("A12_dense_fp16", with(dense({1, 2, 2, 128, 128, 64}), Dtype::kF16));

  add("B1_no_keys", dense({2, 2, 2, 70, 0, 64}));
  add("B1_no_queries", dense({2, 4, 2, 0, 70, 64}));
  add("B4_causal_more_queries", with(dense({1, 2, 1, 200, 100, 64}), Mask::kCausal));
  Case nan_out = with(dense({1, 2, 2, 4, 2, 64}), Mask::kCausal);
  nan_out.out_of_empty_rows_is_nan = true;
  add("B5_rows_that_see_nothing", nan_out);
  nan_out.lse_of_empty_rows = INFINITY;
  add("B1_rows_with_lse_plus_infinity", nan_out);
  add("B8_packed_groups_below_the_tile", packed({1, 4, 2, 1, 1, 64}, {20, 33}, {20, 70}));
  add("B9_packed_odd_lengths", with(packed({1, 2, 2, 1, 1, 64}, {131, 67, 200}, {97, 150, 201}), Data::kLow));

  add("C1_queries_empty_in_front", packed({1, 2, 2, 1, 1, 64}, {0, 0, 1023}, {0, 1, 2045}));
  add("C3_no_queries", packed({1, 2, 1, 1, 1, 64}, {0, 5}, {7, 5}));
  add("C4_no_keys", packed({1, 2, 1, 1, 1, 64}, {3, 4}, {0, 6}));
  add("C4_all_empty", packed({1, 2, 1, 1, 1, 64}, {0, 0}, {0, 0}, 30));
  add("C5_tail", packed({1, 2, 2, 1, 1, 64}, {100, 60}, {100, 60}, 32));
  add("C6_long_tail_causal", with(packed({1, 4, 4, 1, 1, 64}, {137, 349}, {137, 349}, 212), Mask::kCausal));
  Case left_alone = packed({1, 2, 1, 1, 1, 64}, {100, 60}, {30, 90}, 32);
  left_alone.leave_unused_rows = true;
  add("C5_tail_left_alone", left_alone);
  add("C7_one_query_each", with(packed({1, 9, 3, 1, 1, 64}, {0, 1, 0, 1}, {0, 3, 0, 5}), Mask::kCausal));
  Case used = dense({2, 2, 2, 128, 128, 64});
  used.used_q = used.used_k = {5, 128};
  add("C9_rows_used", used);
  used = with(dense({3, 4, 2, 140, 200, 64}), Mask::kCausal);
  used.used_q = {140, 0, 77};
  add("C9_query_rows_used_causal", used);
  used = packed({1, 4, 1, 1, 1, 64}, {150, 40, 0, 200}, {130, 99, 20, 77});
  used.used_k = {129, 0, 20, 5};
  used.used_q = {100, 40, 0, 130};
  add("C9_packed_rows_used", used);
  Case mixed = dense({3, 2, 2, 1, 150, 64});
  mixed.cu_q = {0, 130, 130, 300};
  mixed.shape.seqlen_q = 310;
  mixed.used_k = {150, 20, 66};
  add("C9_packed_queries_padded_keys", mixed);
  Case sink = packed({1, 3, 1, 1, 1, 64}, {150, 70}, {140, 90});
  sink.sink = true;
  add("C11_packed_sink", sink);
  add("C12_two_sequences", packed({1, 2, 2, 1, 1, 64}, {64, 192}, {64, 192}));
  add("C14_one_query_groups", dense({1, 8, 2, 1, 300, 128}));
  std::vector<std::int32_t> lengths(65'600, 0);
  for (std::size_t i = 0; i < lengths.size(); i += 6'001) lengths[i] = 1 + static_cast<std::int32_t>(i % 2);
  lengths.back() = 2;
  add("C15_D7_many_sequences", packed({1, 1, 1, 1, 1, 64}, lengths, lengths));

  Case gaps = with(dense({2, 4, 2, 100, 140, 64}), Mask::kCausal);
  gaps.layout = Layout::kGaps;
  add("E1_every_tensor_its_strides", gaps);
  gaps = packed({1, 2, 2, 1, 1, 64}, {30, 150}, {140, 20}, 5);
  gaps.layout = Layout::kGaps;
  add("E1_packed_with_gaps", gaps);
  gaps.layout = Layout::kHeadMajor;
  add("E1_packed_head_major", gaps);

  add("G3_window", with(dense({1, 2, 2, 512, 512, 64}), Mask{64, 0}));
  add("G3_packed_groups", packed({1, 6, 2, 1, 1, 64}, {200, 0, 300}, {260, 129, 10}));

  add("H1_64_rows", dense({1, 4, 4, 64, 64, 128}));
  add("H2_causal_three_queries", with(dense({1, 1, 1, 3, 128, 128}), Mask::kCausal));
  add("H5_72_channels", packed({1, 3, 3, 1, 1, 72}, {512}, {512}));
  add("H5_104_channels", packed({1, 4, 2, 1, 1, 104}, {140, 9}, {200, 77}));
  add("H8_six_heads_for_one", dense({1, 6, 1, 130, 150, 64}));
  add("H8_eight_heads_for_two", dense({1, 8, 2, 70, 50, 64}));
  add("H10_one_query", dense({1, 1, 1, 1, 128, 64}));
  for (const Mask window : {Mask{0, 0}, Mask{1, 0}, Mask{2, 1}, Mask{kUnlimited, 3}, Mask{5, kUnlimited},
                            Mask{130, 70}, Mask{0, kUnlimited}}) {
    all.push_back({fmt::format("H11_window_{}_{}", window.left + 1, window.right + 1),
                   with(dense({1, 2, 1, 300, 333, 64}), window)});
  }
  // Groups that Hopper works on in parts, whose dK and dV are sums in memory; the last part has fewer heads.
  add("parts_causal", with(dense({1, 11, 1, 300, 333, 64}), Mask::kCausal));
  add("parts_causal_1k_keys", with(dense({1, 10, 2, 100, 1100, 64}), Mask::kCausal));
  add("parts_window_fp16_40_channels",
      with(with(dense({2, 10, 2, 200, 333, 40}), Dtype::kF16), Mask{90, 20}));
  Case parts = with(packed({1, 10, 2, 1, 1, 64}, {90, 150, 0, 33}, {40, 160, 20, 129}, 9), Mask::kCausal);
  parts.leave_unused_rows = true;
  add("parts_packed", parts);
  parts.fp32_gradients = true;
  add("parts_packed_fp32", parts);
  parts.accumulate = true;
  parts.layout = Layout::kGaps;
  add("parts_packed_accumulated", parts);
  parts = with(dense({2, 9, 1, 140, 200, 64}), Mask::kCausal);
  parts.used_k = {129, 20};
  parts.dlse = parts.sink = true;
  add("parts_rows_used_lse_gradient_and_sink", parts);
  // Keys enough for Hopper's pairs of CTAs (plan_sm90.cpp).
  add("pairs_8k_keys", dense({2, 4, 2, 130, 8200, 64}));
  add("pairs_8k_keys_fp16_40_channels", with(dense({1, 2, 2, 70, 8320, 40}), Dtype::kF16));
  add("pairs_32k_keys_causal", with(dense({1, 2, 1, 200, 32800, 64}), Mask::kCausal));
  add("H11_window_fp16_more_queries", with(with(dense({1, 2, 2, 333, 200, 64}), Dtype::kF16), Mask{40, 9}));
  add("H14_no_batch", dense({0, 10, 10, 395, 16, 64}));
  add("H14_no_rows", packed({1, 2, 2, 1, 1, 64}, {}, {}));

  Case lse = with(dense({2, 4, 2, 150, 200, 64}), Mask::kCausal);
  lse.dlse = true;
  add("I1_gradient_of_lse", lse);
  lse.sink = true;
  add("I1_gradient_of_lse_and_sink", lse);
  lse = with(packed({1, 2, 2, 1, 1, 64}, {90, 150, 3}, {40, 160, 0}, 9), Mask{30, 0});
  lse.dlse = lse.sink = true;
  add("I8_packed_lse_gradient_and_sink", lse);
  lse.shape.head_dim = 128;
  lse.scale = dense(lse.shape).scale;
  add("I8_packed_lse_gradient_and_sink_128_channels", lse);

  Case wide = dense({2, 4, 2, 140, 200, 64});
  wide.fp32_gradients = true;
  add("ring_fp32_gradients", wide);
  wide.accumulate = true;
  add("ring_accumulated", wide);
  add("ring_accumulated_128_channels", [&] {
    Case c = wide;
    c.shape.head_dim = 128;
    return c;
  }());
  wide = with(packed({1, 2, 2, 1, 1, 64}, {90, 150}, {40, 160}, 9), Mask::kCausal);
  wide.fp32_gradients = wide.accumulate = true;
  wide.layout = Layout::kGaps;
  add("ring_packed_accumulated", wide);
  return all;
}

// Lengths and options of the suite that the mathematics comes from, with the half that it leaves out (fewer
// keys than queries under a causal mask or a window), groups in turn, and every head dimension.
std::vector<Declared> lengths() {
  std::vector<Declared> all;
  constexpr std::array<std::array<std::int64_t, 2>, 26> kPairs = {
      {{1, 1},       {3, 3},       {64, 32},   {64, 128},  {64, 1},    {128, 128}, {128, 192},
       {256, 256},   {255, 256},   {239, 1},   {799, 3},   {113, 203}, {113, 128}, {128, 217},
       {113, 211},   {108, 256},   {256, 512}, {384, 256}, {640, 128}, {512, 256}, {1024, 1024},
       {1023, 1024}, {1024, 1023}, {511, 1},   {3, 513},   {307, 256}}};
  int turn = 0;
  for (const auto& [q, k] : kPairs) {
    for (const Mask mask : {Mask::kDense, Mask::kCausal, Mask{k / 3, 0}, Mask{7, q / 4}}) {
      const std::int64_t kv_heads = q * k > 500'000 ? 1 : 1 + turn % 2;
      const std::int64_t heads = q * k > 500'000 ? 1 : 2;
      const std::int64_t head_dim = 8 * (16 - turn % 16);
      const Dtype dtype = turn % 3 == 0 ? Dtype::kF16 : Dtype::kBf16;
      Case c = with(with(dense({1, heads, kv_heads, q, k, head_dim}), mask), dtype);
      if (head_dim <= 64) c.tensor_memory = turn % 2 ? TensorMemory::kAliased : TensorMemory::kSplit;
      c.signal = turn / 2 % 2 ? Signal::kCta : Signal::kWarp;
      all.push_back({fmt::format("q{}_k{}_{}_{}", q, k, name(kind_of(mask)), turn++), c});
    }
  }
  return all;
}

// The 124 configurations of the published sweep, their lengths divided by 64, with 4 heads for 32 and 128
// tokens for 64k.
std::vector<Declared> sweep() {
  std::vector<Declared> all;
  constexpr std::int64_t kLengths[] = {8, 16, 32, 64, 128, 256, 512};
  const auto shape = [](std::int64_t length, std::int64_t kv_heads) {
    return Shape{std::max<std::int64_t>(1, 128 / length), 4, kv_heads, length, length, 64};
  };
  const auto add = [&](std::string name, Case c, bool deterministic) {
    c.deterministic = deterministic;
    all.push_back({name + (deterministic ? "_det" : ""), c});
  };
  for (const std::int64_t length : kLengths) {
    for (const Mask mask : {Mask::kDense, Mask::kCausal}) {
      const std::string what = fmt::format("{}_{}", name(mask), length);
      for (const bool deterministic : {false, true}) {
        for (const std::int64_t kv_heads : {4, 2, 1})
          add(fmt::format("kv{}_{}", kv_heads, what), with(dense(shape(length, kv_heads)), mask),
              deterministic);
      }
      add("fp16_" + what, with(with(dense(shape(length, 4)), mask), Dtype::kF16), false);
      const std::vector<std::int32_t> rows(static_cast<std::size_t>(std::max<std::int64_t>(1, 128 / length)),
                                           static_cast<std::int32_t>(length));
      add("packed_" + what, with(packed({1, 4, 4, 1, 1, 64}, rows, rows), mask), false);
    }
    if (length == 8) continue;  // the windowed ones begin at 1k
    for (const bool deterministic : {false, true}) {
      add(fmt::format("local_{}", length),
          with(dense(shape(length, 4)), Mask{kLocal.left / 64, kLocal.right}), deterministic);
    }
  }
  return all;
}

class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!device()) GTEST_SKIP() << "no Hopper GPU";
  }
  static flashback_device* device() { return device_named(GetParam()); }
};
class Declaration : public testing::TestWithParam<std::tuple<std::string, Declared>> {
 protected:
  void SetUp() override {
    if (!device()) GTEST_SKIP() << "no Hopper GPU";
  }
  static flashback_device* device() { return device_named(std::get<0>(GetParam())); }
  static const Case& declared() { return std::get<1>(GetParam()).c; }

  static void expect_solved() {
    const Question16 question = question_of(declared(), 3);
    expect_right(declared(), question, run_backward(device(), declared(), question));
  }
};
class Reports : public Declaration {};
class Lengths : public Declaration {};
class Sweep : public Declaration {};

TEST_P(Reports, AreSolvedInBothModes) {
  Case c = declared();
  const Question16 question = question_of(c, 3);
  expect_right(c, question, run_backward(device(), c, question));
  c.deterministic = true;
  expect_right(c, question, run_backward(device(), c, question));
}

TEST_P(Lengths, AreSolved) {
  expect_solved();
}

TEST_P(Sweep, IsSolved) {
  expect_solved();
}

// On every device; Hopper's kernels have no variants.
std::vector<std::tuple<std::string, Declared>> on_all(const std::vector<Declared>& cases) {
  std::vector<std::tuple<std::string, Declared>> all;
  for (const std::string& device : kDevices) {
    for (Declared declared : cases) {
      if (device != "sm100") {
        declared.c.tensor_memory = TensorMemory::kSplit;
        declared.c.signal = Signal::kWarp;
      }
      all.emplace_back(device, declared);
    }
  }
  return all;
}

// The same with 112, 120 and 128 channels in turn: Hopper has another kernel for them.
std::vector<Declared> widened(std::vector<Declared> cases) {
  std::erase_if(cases, [](const Declared& d) {
    return d.c.shape.head_dim != 64 || d.name.starts_with("pairs") || d.name.starts_with("C15");
  });
  int turn = 0;
  for (Declared& declared : cases) {
    declared.c.shape.head_dim = 112 + 8 * (turn++ % 3);
    declared.c.scale = 1 / std::sqrt(static_cast<float>(declared.c.shape.head_dim));
    declared.name += fmt::format("_{}_channels", declared.c.shape.head_dim);
  }
  return cases;
}
std::vector<std::tuple<std::string, Declared>> on_hopper(const std::vector<Declared>& cases) {
  auto all = on_all(cases);
  std::erase_if(all, [](const auto& on_device) { return std::get<0>(on_device) == "sm100"; });
  return all;
}

std::string title(const testing::TestParamInfo<std::tuple<std::string, Declared>>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(Cases, OnDevice, testing::ValuesIn(kDevices),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Cases, Reports, testing::ValuesIn(on_all(reports())), title);
INSTANTIATE_TEST_SUITE_P(Cases, Lengths, testing::ValuesIn(on_all(lengths())), title);
INSTANTIATE_TEST_SUITE_P(Wide, Reports, testing::ValuesIn(on_hopper(widened(reports()))), title);
INSTANTIATE_TEST_SUITE_P(Wide, Lengths, testing::ValuesIn(on_hopper(widened(lengths()))), title);
INSTANTIATE_TEST_SUITE_P(Cases, Sweep, testing::ValuesIn(on_all(sweep())), title);

TEST(Cases, AreThe124OfTheSweep) {
  EXPECT_EQ(sweep().size(), 124u);
}

void expect_finite(const Gradients& got) {
  for (const auto* gradient : {&got.dq, &got.dk, &got.dv}) {
    for (float value : *gradient) ASSERT_TRUE(std::isfinite(value));
  }
}

// A9: the recomputed score exceeds lse by rounding, by units where scores are 1e8. No weight exceeds 1, and
// so no row of dV the sum of the rows of dO.
TEST_P(OnDevice, A9_ScoresOf100Million) {
  for (const float factor : {1e3f, 1e4f, 3e4f}) {
    SCOPED_TRACE(factor);
    const Case c = dense({1, 2, 2, 8, 8, 64});
    Question16 question = question_of(c, 9);
    for (auto* tensor : {&question.inputs.q, &question.inputs.k}) {
      for (float& value : *tensor) value = round_to(c.dtype, value * factor);
    }
    question.exact = exact(reference_question(c), question.inputs, 1);
    const Gradients got = run_backward(device(), c, question);
    expect_finite(got);
    for (int head = 0; head < 2; ++head) {
      for (int d = 0; d < 64; ++d) {
        double most = 0;
        for (int row = 0; row < 8; ++row) most += std::abs(question.inputs.dout[(row * 2 + head) * 64 + d]);
        for (int row = 0; row < 8; ++row)
          EXPECT_LE(std::abs(got.dv[(row * 2 + head) * 64 + d]), 1.01 * most)
              << row << " " << head << " " << d;
      }
    }
  }
}

// A10: no score is too low to be the highest of its row.
TEST_P(OnDevice, A10_EveryScoreBelowMinus30000) {
  const Case c = dense({1, 1, 1, 64, 130, 64});
  Question16 question = question_of(c, 10);
  for (std::size_t i = 0; i < question.inputs.q.size(); ++i) question.inputs.q[i] = i % 64 == 0 ? 448 : 0;
  for (std::size_t i = 0; i < question.inputs.k.size(); ++i)
    question.inputs.k[i] = i % 64 == 0 ? round_to(c.dtype, -540 - float(i / 64 % 3)) : 0;
  question.exact = exact(reference_question(c), question.inputs, 1);
  question.sixteen =
      sixteen_bit(reference_question(c), question.inputs, stored(question.exact.out, c.dtype), c.dtype, 1);
  ASSERT_LT(question.exact.lse[0], -30'000);
  expect_right(c, question, run_backward(device(), c, question));
}

// B2: a row whose lse from outside says that it sees no key adds nothing, under a mask that knows better.
TEST_P(OnDevice, B2_LseFromOutsideMayBeInfinite) {
  const Case c = dense({1, 1, 1, 100, 150, 64}), fewer = dense({1, 1, 1, 70, 150, 64});
  const Question16 question = question_of(c, 11);
  Question16 without = question;
  for (auto* tensor : {&without.inputs.q, &without.inputs.dout}) tensor->resize(70 * 64);
  without.exact = exact(reference_question(fewer), without.inputs, 1);
  without.sixteen =
      sixteen_bit(reference_question(fewer), without.inputs, stored(without.exact.out, c.dtype), c.dtype, 1);
  for (const double lse : {-INFINITY, INFINITY}) {
    Question16 asked = question;
    for (int row = 70; row < 100; ++row) {
      asked.exact.lse[row] = lse;
      for (int d = 0; d < 64; ++d) asked.exact.out[row * 64 + d] = NAN;
    }
    Case given = c;
    given.lse_of_empty_rows = static_cast<float>(lse);
    Gradients got = run_backward(device(), given, asked);
    for (int i = 70 * 64; i < 100 * 64; ++i) ASSERT_EQ(got.dq[i], 0);
    got.dq.resize(70 * 64);
    expect_right(fewer, without, got);
  }
}

// A NaN in keys that no query sees, or in queries that see no key, does not leak.
TEST_P(OnDevice, NaNOutOfSightStaysThere) {
  Case c = with(dense({1, 2, 2, 50, 300, 64}), Mask{10, 0});
  Question16 question = question_of(c, 12);
  for (int i = 0; i < 240 * 2 * 64; ++i) question.inputs.k[i] = question.inputs.v[i] = NAN;
  expect_right(c, question, run_backward(device(), c, question));
  c = with(dense({1, 2, 2, 300, 50, 64}), Mask::kCausal);
  question = question_of(c, 13);
  for (int i = 0; i < 250 * 2 * 64; ++i) question.inputs.q[i] = question.inputs.dout[i] = NAN;
  expect_right(c, question, run_backward(device(), c, question));
}

// Ring attention: each part of the keys with the lse and out of all of them; the parts' dQ add up.
TEST_P(OnDevice, PartsOfTheKeysAddUp) {
  const Case whole = dense({1, 2, 1, 130, 300, 64});
  const Question16 question = question_of(whole, 14);
  Gradients sum;
  for (const auto& [first, end] : {std::pair(0, 140), std::pair(140, 300)}) {
    Case part = dense({1, 2, 1, 130, end - first, 64});
    part.fp32_gradients = part.accumulate = true;
    Question16 asked = question;
    for (auto* tensor : {&asked.inputs.k, &asked.inputs.v}) {
      tensor->erase(tensor->begin() + end * 64, tensor->end());
      tensor->erase(tensor->begin(), tensor->begin() + first * 64);
    }
    Gradients got = run_backward(device(), part, asked);
    for (auto* gradient : {&got.dq, &got.dk, &got.dv}) {
      for (std::size_t i = 0; i < gradient->size(); ++i) (*gradient)[i] -= start_of(i);
    }
    sum.dq.resize(got.dq.size());
    for (std::size_t i = 0; i < got.dq.size(); ++i) sum.dq[i] += got.dq[i];
    sum.dk.insert(sum.dk.end(), got.dk.begin(), got.dk.end());
    sum.dv.insert(sum.dv.end(), got.dv.begin(), got.dv.end());
  }
  expect_right(whole, question, sum);
}

// A sequence's bits do not depend on what it is packed with.
TEST_P(OnDevice, BitsDependOnNoNeighbour) {
  Case pair = with(packed({1, 4, 2, 1, 1, 64}, {200, 150}, {300, 170}), Mask::kCausal);
  pair.deterministic = true;
  const Question16 question = question_of(pair, 15);
  const Gradients both = run_backward(device(), pair, question);
  Case alone = with(packed({1, 4, 2, 1, 1, 64}, {150}, {170}), Mask::kCausal);
  alone.deterministic = true;
  Question16 second = question_of(alone, 15);
  const auto tail = [](const auto& all, std::size_t size) {
    return std::decay_t<decltype(all)>(all.end() - static_cast<std::ptrdiff_t>(size), all.end());
  };
  second.inputs.q = tail(question.inputs.q, second.inputs.q.size());
  second.inputs.k = tail(question.inputs.k, second.inputs.k.size());
  second.inputs.v = tail(question.inputs.v, second.inputs.v.size());
  second.inputs.dout = tail(question.inputs.dout, second.inputs.dout.size());
  second.exact = exact(reference_question(alone), second.inputs, 1);
  const Gradients got = run_backward(device(), alone, second);
  EXPECT_EQ(got.dq, tail(both.dq, got.dq.size()));
  EXPECT_EQ(got.dk, tail(both.dk, got.dk.size()));
  EXPECT_EQ(got.dv, tail(both.dv, got.dv.size()));
}

}  // namespace
}  // namespace flashback::test
