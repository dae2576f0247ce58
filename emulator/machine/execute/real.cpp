#include "emulator/machine/execute/real.h"

#include <algorithm>
#include <limits>

namespace flashback::emulator {
namespace {

// `rest` is what the exact result has beyond x, of which it is less than the last place.
double odd(double x, double rest) {
  if (rest == 0 || !std::isfinite(x)) return x;
  const std::int64_t bits = std::bit_cast<std::int64_t>(x);
  if (bits & 1) return x;
  return std::bit_cast<double>(bits + ((rest > 0) == (x > 0) ? 1 : -1));
}

}  // namespace

double round_to(double x, Format format, Rounding rounding) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent =
      std::max(std::ilogb(x), format.min_exponent) - (format.precision - 1);  // of the last place
  const double places = std::ldexp(x, -exponent);
  double whole = 0;
  switch (rounding) {
    case Rounding::kNearest:
      whole = std::nearbyint(places);
      break;
    case Rounding::kZero:
      whole = std::trunc(places);
      break;
    case Rounding::kDown:
      whole = std::floor(places);
      break;
    case Rounding::kUp:
      whole = std::ceil(places);
      break;
  }
  const double result = std::copysign(std::ldexp(whole, exponent), x);
  const double largest = std::ldexp(2 - std::ldexp(1, 1 - format.precision), format.max_exponent);
  if (std::abs(result) <= largest) return result;
  const bool away = rounding == Rounding::kNearest || rounding == (x > 0 ? Rounding::kUp : Rounding::kDown);
  return std::copysign(away ? std::numeric_limits<double>::infinity() : largest, x);
}

double odd_sum(double a, double b) {
  const double sum = a + b;
  const double b_in_sum = sum - a;
  return odd(sum, (a - (sum - b_in_sum)) + (b - b_in_sum));
}

double odd_quotient(double a, double b) {
  const double quotient = a / b;
  if (!std::isfinite(quotient) || std::isinf(b)) return quotient;
  const double rest = std::fma(-quotient, b, a);
  return odd(quotient, b > 0 ? rest : -rest);
}

double odd_root(double a) {
  const double root = std::sqrt(a);
  return std::isfinite(root) ? odd(root, std::fma(-root, root, a)) : root;
}

double odd_integer(__int128 a) {
  const double nearest = double(a);
  const __int128 rest = a - static_cast<__int128>(nearest);
  return odd(nearest, rest == 0 ? 0.0 : rest > 0 ? 1.0 : -1.0);
}

}  // namespace flashback::emulator
