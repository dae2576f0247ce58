// All 65,536 values of both formats, and rounding against the definition: the nearest, the even one of two.
#include "attention/reference/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace flashback::reference {
namespace {

class Rounding : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, Rounding, testing::Values(Dtype::kBf16, Dtype::kF16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(Rounding, BitsSurviveTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bits(GetParam(), static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(from_bits(GetParam(), to_bits(GetParam(), value))));
    } else {
      ASSERT_EQ(to_bits(GetParam(), value), bits);
      ASSERT_EQ(round_to(GetParam(), value), value);
    }
  }
}

// Between every two neighbours: below the middle, the middle, above it, of both signs.
TEST_P(Rounding, NearestThenEven) {
  const std::uint16_t last = GetParam() == Dtype::kBf16 ? 0x7f7f : 0x7bff;
  for (std::uint16_t bits = 0; bits < last; ++bits) {
    const float low = from_bits(GetParam(), bits), high = from_bits(GetParam(), bits + 1);
    const float middle = low + (high - low) / 2;
    const float even = bits % 2 == 0 ? low : high;
    for (float sign : {1.0f, -1.0f}) {
      ASSERT_EQ(round_to(GetParam(), sign * std::nextafter(middle, low)), sign * low);
      ASSERT_EQ(round_to(GetParam(), sign * middle), sign * even);
      ASSERT_EQ(round_to(GetParam(), sign * std::nextafter(middle, high)), sign * high);
    }
  }
}

TEST_P(Rounding, BeyondTheRangeIsInfinity) {
  const float largest = from_bits(GetParam(), GetParam() == Dtype::kBf16 ? 0x7f7f : 0x7bff);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_to(GetParam(), largest), largest);
  EXPECT_EQ(round_to(GetParam(), GetParam() == Dtype::kBf16 ? std::numeric_limits<float>::max() : 65520.0f),
            infinity);
  EXPECT_EQ(round_to(GetParam(), -infinity), -infinity);
  EXPECT_TRUE(std::isnan(round_to(GetParam(), std::nanf(""))));
}

TEST(Rounding, ANanWithALowPayloadStaysOne) {
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(from_bits(Dtype::kBf16, to_bits(Dtype::kBf16, nan))));
  EXPECT_TRUE(std::isnan(from_bits(Dtype::kF16, to_bits(Dtype::kF16, nan))));
}

}  // namespace
}  // namespace flashback::reference
