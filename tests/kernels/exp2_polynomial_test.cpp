// The polynomial that stands in for the special function unit, evaluated as kernels do.
#include "kernels/shared/exp2_polynomial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace flashback::shared {
namespace {

double largest_error(float (*coefficient)(int)) {
  double largest = 0;
  for (int i = -(1 << 19); i <= 1 << 19; ++i) {
    const float f = static_cast<float>(i) / (1 << 20);
    float power = coefficient(kExp2Degree);
    for (int k = kExp2Degree - 1; k >= 0; --k) power = std::fma(power, f, coefficient(k));
    largest = std::max(largest, std::fabs(power / std::exp2(double(f)) - 1));
  }
  return largest;
}

TEST(Exp2Polynomial, ErrsByLessThanSaid) {
  EXPECT_LT(largest_error([](int i) { return exp2_coefficient(i); }), 2.7e-6);
  EXPECT_GT(largest_error([](int i) { return exp2_coefficient(i) * (i == 3 ? 1.001f : 1.0f); }), 2.7e-6);
}

}  // namespace
}  // namespace flashback::shared
