#include "bench/prediction.h"

#include <gtest/gtest.h>

#include <cstring>

#include "bench/suites.h"

namespace flashback::bench {
namespace {

using emulator::timing::Costs;
using emulator::timing::nominal;

const Recordings& recordings() {
  static const Recordings recorded = record(Arch::kSm100, Problem{}, kTripCounts);
  return recorded;
}

TEST(Prediction, TheRecordedKernelIsThatOfTheHeadDimension) {
  Problem problem;
  problem.shape.head_dim = 128;
  constexpr int kTrips = 2;
  for (const auto& [arch, name] : {std::pair{Arch::kSm100, "backward_sm100_d128_bf16_dense_aliased_warp"},
                                   std::pair{Arch::kSm90, "backward_sm90_d128_bf16_dense"}}) {
    EXPECT_EQ(record(arch, problem, {&kTrips, 1}).at(kTrips).kernel->name, name);
  }
}

TEST(Prediction, CtaTimesAreReplayedLinearBetweenAndBeyond) {
  const CtaTimes times(recordings(), nominal(Arch::kSm100));
  EXPECT_LT(times.cycles(1), times.cycles(2));
  EXPECT_DOUBLE_EQ(times.cycles(6), (times.cycles(4) + times.cycles(8)) / 2);
  EXPECT_DOUBLE_EQ(times.cycles(100), times.cycles(24) + 76 * times.tile());
}

// As many CTAs as multiprocessors are one wave; one more is another.
TEST(Prediction, TheLastWaveCostsAWholeOne) {
  Costs costs = nominal(Arch::kSm100);
  costs.multiprocessors = 4;
  costs.launch = 0;
  costs.memory_terabytes = 1e6;
  const CtaTimes times(recordings(), costs);
  Problem problem;
  problem.shape = {.heads = 4, .kv_heads = 4, .seqlen_q = 1024, .seqlen_k = 128};
  const double wave = times.cycles(8) / (costs.gigahertz * 1e9);
  EXPECT_NEAR(predict(Arch::kSm100, problem, times, costs).seconds, wave, 1e-6 * wave);
  problem.shape.heads = problem.shape.kv_heads = 5;
  EXPECT_NEAR(predict(Arch::kSm100, problem, times, costs).seconds, 2 * wave, 1e-6 * wave);
}

TEST(Prediction, SettingsAreEveryCombinationOfTheOpenConstants) {
  std::size_t combinations = 1;
  for (const emulator::timing::Constant& c : emulator::timing::constants(Arch::kSm100)) {
    if (c.open) combinations *= 1 + (c.low != c.nominal) + (c.high != c.nominal);
  }
  const std::vector<Costs> all = settings(Arch::kSm100);
  EXPECT_EQ(all.size(), combinations);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(std::memcmp(&all[i], &all[j], sizeof(Costs)), 0);
  }
  const Costs usual = nominal(Arch::kSm100);
  EXPECT_EQ(std::memcmp(&all[0], &usual, sizeof(Costs)), 0);
}

TEST(Prediction, AnIntervalIsWhatLiesBetweenTheDeciles) {
  std::vector<double> values = {7};
  for (int i = 100; i >= 0; --i) {
    if (i != 7) values.push_back(i);
  }
  const Interval interval = interval_of(values);
  EXPECT_EQ(interval.nominal, 7);
  EXPECT_EQ(interval.low, 10);
  EXPECT_EQ(interval.high, 90);
  EXPECT_EQ(interval.least, 0);
  EXPECT_EQ(interval.most, 100);
}

TEST(Suites, AMeanAndAWorstRowAreTakenUnderEachSetting) {
  std::vector<Row> rows(3);
  rows[0].name = "first", rows[0].ratios = {1, 4};
  rows[1].name = "second", rows[1].ratios = {4, 1};
  rows[2].deterministic = true, rows[2].ratios = {100, 100};
  const Summary plain = summary(rows, false);
  EXPECT_EQ(plain.rows, 2);
  EXPECT_NEAR(plain.geometric_mean.nominal, 2, 1e-12);
  EXPECT_NEAR(plain.geometric_mean.least, 2, 1e-12);
  EXPECT_EQ(plain.worst.most, 1);
  EXPECT_EQ(plain.worst_case, "first");
  EXPECT_EQ(summary(rows, true).worst.nominal, 100);
  EXPECT_EQ(summary({}, true).rows, 0);
}

TEST(Suites, NoRowIsPredictedWithoutItsKernel) {
  const SuiteResult headline = predict_headline(false, [](const std::string&) {});
  ASSERT_EQ(headline.rows.size(), 7u);
  for (const Row& row : headline.rows) {
    EXPECT_EQ(row.no_kernel.empty(), row.tflops.nominal > 0) << row.name;
    EXPECT_TRUE(row.has_published()) << row.name;
  }
  EXPECT_TRUE(headline.rows[0].no_kernel.empty());
  EXPECT_GT(headline.rows[0].tflops.nominal, 300);
  EXPECT_LT(headline.rows[0].tflops.nominal, 2250);
}

}  // namespace
}  // namespace flashback::bench
