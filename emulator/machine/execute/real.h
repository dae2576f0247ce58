// Floating-point words: canonical NaNs, flushing of subnormals, rounding to any narrower format in any
// direction.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace flashback::emulator {

// Single precision results that are NaN have these bits, whatever the sources carried.
inline constexpr std::uint32_t kNaN32 = 0x7fffffff;
inline constexpr std::uint16_t kNaN16 = 0x7fff;  // of f16 and bf16

inline std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

inline float canonical(float x) {
  return x == x ? x : float_of(kNaN32);
}
inline double quiet(double nan) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | 0x0008000000000000);
}
// `.ftz`: a subnormal becomes the zero of its sign.
inline float flushed(float x) {
  const std::uint32_t bits = bits_of(x);
  return float_of((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}
// `.sat`: into [0, 1], NaN to +0.
inline float saturated(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}

enum class Rounding : std::uint8_t { kNearest, kZero, kDown, kUp };

struct Format {
  int precision;     // bits of the significand, the hidden one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest
};
inline constexpr Format kBinary32{24, -126, 127};
inline constexpr Format kBinary16{11, -14, 15};
inline constexpr Format kBfloat16{8, -126, 127};

// The value of `format` that x rounds to; overflow gives infinity or the largest number, as the direction
// says.
double round_to(double x, Format format, Rounding rounding);

// Whether `.ftz` makes zero of the exact result x of an operation: rounded to the precision of the format
// without regard to its smallest exponent, it lies below the smallest normal number.
inline bool is_tiny(double x, Rounding rounding, Format format = kBinary32) {
  const double smallest = std::ldexp(1.0, format.min_exponent);
  return std::abs(x) < smallest &&
         std::abs(round_to(x, {format.precision, -1000, format.max_exponent}, rounding)) < smallest;
}

// Exact results in a double that cannot hold them: "rounded to odd", the last bit says that something was
// lost. Rounding such a result again to at most 51 bits, in any direction, gives what one rounding of the
// exact result gives.
double odd_sum(double a, double b);
double odd_quotient(double a, double b);
double odd_root(double a);
double odd_integer(__int128 a);

// The zero that an exact sum of opposite numbers gives has the sign of the rounding direction.
inline double signed_zero(double sum, double a, double b, Rounding rounding) {
  return sum == 0 && std::signbit(a) != std::signbit(b) ? (rounding == Rounding::kDown ? -0.0 : 0.0) : sum;
}

// A double in a float, rounded to odd as above: what a format of at most 22 bits may be rounded from.
inline float odd_float(double x) {
  const float f = float(x);
  const std::uint32_t bits = bits_of(f);
  if (double(f) == x || (bits & 1) || x != x) return f;
  return float_of(std::abs(double(f)) < std::abs(x) ? bits + 1 : bits - 1);
}

// A float's nearest bf16, ties to even.
inline std::uint32_t nearest_bf16(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return x == x ? rounded : std::uint32_t{kNaN16};
}

struct F16 {
  static constexpr Format kFormat = kBinary16;
  static float decode(std::uint16_t bits) { return _cvtsh_ss(bits); }
  static std::uint16_t nearest(float x) {
    return x == x ? std::uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)) : kNaN16;
  }
};

struct Bf16 {
  static constexpr Format kFormat = kBfloat16;
  static float decode(std::uint16_t bits) { return float_of(std::uint32_t{bits} << 16); }
  static std::uint16_t nearest(float x) { return std::uint16_t(nearest_bf16(x)); }
};

}  // namespace flashback::emulator
