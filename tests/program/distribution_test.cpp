#include "program/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace flashback::program {
namespace {

TEST(Distribution, MaxAndKurtosis) {
  // Mean 0, squares 1, 1, 9, 9 (mean 5), fourths 1, 1, 81, 81 (mean 41).
  const Distribution d = distribution_of(std::vector<float>{-1, 1, 3, -3});
  EXPECT_EQ(d.max_abs, 3);
  EXPECT_DOUBLE_EQ(d.kurtosis, 41.0 / 25);
  // Moved by a constant: the largest value changes, the kurtosis does not.
  const Distribution moved = distribution_of(std::vector<float>{-11, -9, -7, -13});
  EXPECT_EQ(moved.max_abs, 13);
  EXPECT_DOUBLE_EQ(moved.kurtosis, 41.0 / 25);
  EXPECT_TRUE(std::isnan(distribution_of(std::vector<float>{2, 2, 2}).kurtosis));
}

TEST(Distribution, RangeLeavesOutRowsThatSeeNoKey) {
  const float empty = -std::numeric_limits<float>::infinity();
  const Range range = range_of(std::vector<float>{empty, 2.5f, -1, empty});
  EXPECT_EQ(range.least, -1);
  EXPECT_EQ(range.most, 2.5);
  EXPECT_EQ(range.infinite, 2u);
}

}  // namespace
}  // namespace flashback::program
