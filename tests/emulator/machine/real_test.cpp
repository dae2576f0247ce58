// The arithmetic under the floating-point bodies, against the host's rounding modes, integers and double
// precision.
#include "emulator/machine/execute/real.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <random>

#include "emulator/machine/execute/multifunction.h"

namespace flashback::emulator {
namespace {

// Floats of every exponent, often close to one another so that sums cancel.
class RandomFloats {
 public:
  float next() {
    const std::uint32_t bits = std::uint32_t(random_());
    last_ = float_of(bits % 4 == 0 ? bits_of(last_) + (bits >> 28) : std::uint32_t(random_()));
    return std::isfinite(last_) ? last_ : next();
  }

 private:
  std::mt19937 random_{1};
  float last_ = 1;
};

struct Mode {
  Rounding rounding;
  int host;
};
constexpr Mode kModes[] = {{Rounding::kNearest, FE_TONEAREST},
                           {Rounding::kZero, FE_TOWARDZERO},
                           {Rounding::kDown, FE_DOWNWARD},
                           {Rounding::kUp, FE_UPWARD}};

// The operation by the host under its rounding mode; volatile keeps it between the two calls.
template <class F>
float on_host(int mode, F&& operation) {
  std::fesetround(mode);
  volatile float result = operation();
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST(Real, OddResultsRoundAsExactOnes) {
  RandomFloats random;
  for (int i = 0; i < 200000; ++i) {
    volatile float a = random.next(), b = random.next(), c = random.next();
    for (const Mode& mode : kModes) {
      auto rounded = [&](double exact) { return float(round_to(exact, kBinary32, mode.rounding)); };
      const float sum = on_host(mode.host, [&] { return a + b; });
      const float product = on_host(mode.host, [&] { return a * b; });
      const float fused = on_host(mode.host, [&] { return std::fma(float(a), float(b), float(c)); });
      const float quotient = on_host(mode.host, [&] { return a / b; });
      const float root = on_host(mode.host, [&] { return std::sqrt(std::abs(float(a))); });
      ASSERT_EQ(bits_of(rounded(signed_zero(odd_sum(a, b), a, b, mode.rounding))), bits_of(sum))
          << a << ' ' << b;
      ASSERT_EQ(bits_of(rounded(double(a) * b)), bits_of(product)) << a << ' ' << b;
      const double exact = signed_zero(odd_sum(double(a) * b, c), double(a) * b, c, mode.rounding);
      ASSERT_EQ(bits_of(rounded(exact)), bits_of(fused)) << a << ' ' << b << ' ' << c;
      if (b != 0) {
        ASSERT_EQ(bits_of(rounded(odd_quotient(a, b))), bits_of(quotient)) << a << ' ' << b;
      }
      ASSERT_EQ(bits_of(rounded(odd_root(std::abs(float(a))))), bits_of(root)) << a;
    }
  }
}

TEST(Real, IntegersRoundOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    volatile std::int64_t n = std::int64_t(random()) >> (random() % 64);
    for (const Mode& mode : kModes) {
      const float expected = on_host(mode.host, [&] { return float(n); });
      ASSERT_EQ(float(round_to(odd_integer(n), kBinary32, mode.rounding)), expected) << n;
    }
  }
}

// An f16 in units of 2^-24, its smallest.
std::int64_t units(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const std::int64_t magnitude =
      exponent == 0 ? bits & 1023 : std::int64_t((bits & 1023) + 1024) << (exponent - 1);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// The f16 nearest to n * 2^-48, ties to even.
std::uint16_t nearest_f16(__int128 n) {
  const std::uint16_t sign = n < 0 ? 0x8000 : 0;
  const unsigned __int128 magnitude = n < 0 ? -n : n;
  int shift = 24;  // of the last place
  while (magnitude >> shift >= 2048) ++shift;
  unsigned __int128 whole = magnitude >> shift;
  const unsigned __int128 rest = magnitude - (whole << shift), half = static_cast<unsigned __int128>(1)
                                                                      << (shift - 1);
  if (rest > half || (rest == half && (whole & 1))) ++whole;
  if (whole == 2048) whole = 1024, ++shift;
  const int exponent = whole < 1024 ? 0 : shift - 23;
  if (exponent > 30) return sign | 0x7c00;
  return std::uint16_t(sign | exponent << 10 | (std::uint16_t(whole) & 1023));
}

TEST(Real, HalvesAreFusedWithOneRounding) {
  std::mt19937 random(3);
  for (int i = 0; i < 3000000; ++i) {
    auto finite = [&] {
      std::uint16_t bits;
      do bits = std::uint16_t(random());
      while ((bits & 0x7c00) == 0x7c00);
      return bits;
    };
    const std::uint16_t a = finite(), b = finite(), c = finite();
    const __int128 exact =
        static_cast<__int128>(units(a)) * units(b) + (static_cast<__int128>(units(c)) << 24);
    if (exact == 0) continue;  // its sign is another matter
    const double sum = odd_sum(double(F16::decode(a)) * F16::decode(b), F16::decode(c));
    ASSERT_EQ(F16::nearest(odd_float(sum)), nearest_f16(exact)) << a << ' ' << b << ' ' << c;
  }
}

// Where a table of coefficients or the square would be wrong, an error of many places would show. (Bit by
// bit, the results are compared with an H200's in tests/emulator/hardware.)
template <class F, class Exact>
double worst_error(double from, double to, F&& function, Exact&& exact) {
  double worst = 0;
  for (double x = from; x < to; x += (to - from) / 1e6) {
    const float rounded = float(x);
    const double value = exact(double(rounded));
    worst = std::max(worst, std::abs(function(rounded) - value) / std::ldexp(1.0, std::ilogb(value) - 23));
  }
  return worst;
}
TEST(Real, MultifunctionUnitIsCloseToTheFunctions) {
  EXPECT_LT(worst_error(-125, 127.999, unit_exp2, [](double x) { return std::exp2(x); }), 2.5);
  EXPECT_LT(worst_error(0.3, 9.0, unit_reciprocal, [](double x) { return 1 / x; }), 1);
  EXPECT_LT(worst_error(0.3, 9.0, unit_reciprocal_root, [](double x) { return 1 / std::sqrt(x); }), 2);
  EXPECT_LT(worst_error(0.3, 9.0, unit_root, [](double x) { return std::sqrt(x); }), 2);
  EXPECT_LT(worst_error(2.0, 9.0, unit_logarithm, [](double x) { return std::log2(x); }), 1.5);
  for (int n = -126; n < 128; ++n) EXPECT_EQ(unit_exp2(float(n)), std::ldexp(1.0f, n)) << n;
}

TEST(Real, TinyIsJudgedWithoutTheSmallestExponent) {
  EXPECT_TRUE(is_tiny(0x1.fffffep-127, Rounding::kNearest));
  EXPECT_FALSE(is_tiny(0x1.ffffffp-127, Rounding::kNearest));  // a tie that goes up
  EXPECT_TRUE(is_tiny(0x1.ffffffp-127, Rounding::kZero));
  EXPECT_FALSE(is_tiny(0x1p-126, Rounding::kZero));
}

}  // namespace
}  // namespace flashback::emulator
