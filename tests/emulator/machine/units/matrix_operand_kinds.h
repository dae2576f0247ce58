// Random operands of every kind that matrix arithmetic treats differently.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "emulator/machine/units/matrix_arithmetic.h"
#include "tests/emulator/machine/units/matrix_reference.h"

namespace flashback::emulator {

using Random = std::mt19937_64;

struct alignas(64) Operands {
  std::uint16_t a[kMatrixLanes][kMatrixDepth];
  std::uint16_t b[kMatrixColumns][kMatrixDepth];
  std::uint32_t c[kMatrixColumns][kMatrixLanes];
};

inline reference::HalfFormat format_of(Half half) {
  return half == Half::kBf16 ? reference::kBf16 : reference::kF16;
}

inline bool chance(Random& random, double probability) {
  return std::bernoulli_distribution(probability)(random);
}
inline double normal(Random& random) {
  return std::normal_distribution<double>()(random);
}

// A 16-bit number with any sign and fraction and an exponent from a range, clamped to what the format has.
inline std::uint16_t with_exponent(Random& random, Half half, int lowest, int highest) {
  const auto [fraction_bits, exponent_bits] = format_of(half);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int field = std::uniform_int_distribution(lowest, highest)(random) + bias;
  field = std::clamp(field, 0, 2 * bias);
  const std::uint32_t sign_and_fraction = static_cast<std::uint32_t>(random());
  return static_cast<std::uint16_t>((sign_and_fraction & ~(((1u << exponent_bits) - 1) << fraction_bits)) |
                                    static_cast<std::uint32_t>(field) << fraction_bits);
}

inline std::uint32_t word_with_exponent(Random& random, int lowest, int highest) {
  const int field = std::clamp(std::uniform_int_distribution(lowest, highest)(random) + 127, 0, 254);
  return (static_cast<std::uint32_t>(random()) & 0x807fffff) | static_cast<std::uint32_t>(field) << 23;
}

// Rounded to nearest even; beyond the largest number, infinity.
inline std::uint16_t to_half(double value, Half half) {
  const auto [fraction_bits, exponent_bits] = format_of(half);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  // The fraction carries into the exponent field by itself.
  const auto significand = std::lround(std::nearbyint(std::ldexp(std::abs(value), fraction_bits - exponent)));
  const long field = exponent + bias - 1;
  const long bits =
      std::min((field << fraction_bits) + significand, ((1L << exponent_bits) - 1) << fraction_bits);
  return static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
}

inline std::uint32_t to_word(double value) {
  const float f = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return bits;
}

inline std::uint16_t infinity(Half half) {
  return half == Half::kBf16 ? 0x7f80 : 0x7c00;
}
inline std::uint16_t zero(Random& random) {
  return chance(random, 0.5) ? 0x8000 : 0;
}

struct OperandKind {
  const char* name;
  std::uint16_t (*a)(Random&, Half);
  std::uint16_t (*b)(Random&, Half);
  std::uint32_t (*c)(Random&);
  void (*finish)(Random&, Operands*) = nullptr;
};

inline std::uint16_t any_normal(Random& random, Half half) {
  return to_half(normal(random), half);
}
inline std::uint16_t any_finite(Random& random, Half half) {
  return with_exponent(random, half, -127, 127);
}
inline std::uint16_t any_bits(Random& random, Half) {
  return static_cast<std::uint16_t>(random());
}

// Zero in most of the first rows, all of rows 64 to 95, and some columns, 8 neighbours among them.
inline void clear_some_lines(Random& random, Operands* x) {
  const auto clear = [&](std::uint16_t* line) {
    std::generate_n(line, kMatrixDepth, [&] { return zero(random); });
  };
  for (int m = 0; m < 96; ++m) {
    if (m >= 64 || chance(random, 0.7)) clear(x->a[m]);
  }
  for (int n = 0; n < kMatrixColumns; ++n) {
    if (n % 64 >= 56 || chance(random, 0.05)) clear(x->b[n]);
  }
}

// Large a meet small b and the reverse: the largest product is far below the product of the largest.
inline void cross(Random&, Operands* x) {
  for (int k = 0; k < kMatrixDepth; ++k) {
    for (auto& row : x->a) row[k] = static_cast<std::uint16_t>(row[k] - (k % 2 == 0 ? 0 : 45 << 7));
    for (auto& column : x->b) column[k] = static_cast<std::uint16_t>(column[k] - (k % 2 != 0 ? 0 : 45 << 7));
  }
}

inline const OperandKind kOperandKinds[] = {
    {"normal", any_normal, any_normal, [](Random& r) { return to_word(normal(r)); }},
    {"large_accumulator", any_normal, any_normal, [](Random& r) { return word_with_exponent(r, 0, 20); }},
    {"probabilities",
     [](Random& r, Half half) { return to_half(std::exp(-5 * std::pow(normal(r), 2)), half); }, any_normal,
     [](Random& r) { return to_word(10 * normal(r)); }},
    {"causal",
     [](Random& r, Half half) { return chance(r, 0.8) ? zero(r) : to_half(std::exp(normal(r)), half); },
     any_normal, [](Random& r) { return chance(r, 0.5) ? 0u : to_word(normal(r)); }},
    {"mostly_zero",
     [](Random& r, Half half) { return chance(r, 0.97) ? zero(r) : with_exponent(r, half, -120, 15); },
     [](Random& r, Half half) { return chance(r, 0.5) ? zero(r) : with_exponent(r, half, -120, 105); },
     [](Random& r) { return chance(r, 0.5) ? zero(r) * 0x10000u : word_with_exponent(r, -127, 127); }},
    // Whole rows and columns of zeros, beside what no longer cares.
    {"rows_of_zeros", any_normal, any_normal,
     [](Random& r) {
       if (chance(r, 0.001)) return static_cast<std::uint32_t>(r()) | 0x7f800000;
       return chance(r, 0.3) ? zero(r) * 0x10000u : word_with_exponent(r, -127, 5);
     },
     clear_some_lines},
    {"crossed", [](Random& r, Half half) { return with_exponent(r, half, -22, -20); },
     [](Random& r, Half half) { return with_exponent(r, half, -32, -30); },
     [](Random& r) { return chance(r, 0.5) ? 0u : word_with_exponent(r, -127, -90); }, cross},
    {"wide", [](Random& r, Half half) { return with_exponent(r, half, -40, 40); },
     [](Random& r, Half half) { return with_exponent(r, half, -40, 40); },
     [](Random& r) { return word_with_exponent(r, -80, 80); }},
    {"far_apart", [](Random& r, Half half) { return with_exponent(r, half, chance(r, 0.5) ? -90 : -10, 0); },
     [](Random& r, Half half) { return with_exponent(r, half, chance(r, 0.5) ? -90 : -10, 0); },
     [](Random& r) { return word_with_exponent(r, -127, -20); }},
    {"any_finite", any_finite, any_finite, [](Random& r) { return word_with_exponent(r, -127, 127); }},
    {"any_bits", any_bits, any_bits, [](Random& r) { return static_cast<std::uint32_t>(r()); }},
    {"subnormal",
     [](Random& r, Half half) {
       return with_exponent(r, half, half == Half::kBf16 ? -128 : -17, half == Half::kBf16 ? -125 : -13);
     },
     [](Random& r, Half half) {
       return with_exponent(r, half, half == Half::kBf16 ? 100 : -17, half == Half::kBf16 ? 127 : 15);
     },
     [](Random& r) { return word_with_exponent(r, -127, -10); }},
    {"tiny", [](Random& r, Half half) { return with_exponent(r, half, -75, -60); },
     [](Random& r, Half half) { return with_exponent(r, half, -75, -55); },
     [](Random& r) { return chance(r, 0.5) ? 0u : word_with_exponent(r, -127, -120); }},
    // Products around and below the exponent that zeros have, -133, with terms that it cuts.
    {"below_zeros", [](Random& r, Half half) { return with_exponent(r, half, -72, -66); },
     [](Random& r, Half half) { return with_exponent(r, half, -78, -66); },
     [](Random& r) { return zero(r) * 0x10000u; }},
    {"edge_of_the_fast_range", [](Random& r, Half half) { return with_exponent(r, half, -53, -51); },
     [](Random& r, Half half) { return with_exponent(r, half, -52, -50); },
     [](Random& r) { return word_with_exponent(r, -106, -98); }},
    {"huge", [](Random& r, Half half) { return with_exponent(r, half, 58, 63); },
     [](Random& r, Half half) { return with_exponent(r, half, 58, 64); },
     [](Random& r) { return word_with_exponent(r, 115, 127); }},
    // One sign and products of exponent 123: sums just beyond fp32.
    {"just_beyond",
     [](Random& r, Half half) { return static_cast<std::uint16_t>(with_exponent(r, half, 61, 61) & 0x7fff); },
     [](Random& r, Half half) { return static_cast<std::uint16_t>(with_exponent(r, half, 62, 62) & 0x7fff); },
     [](Random& r) { return word_with_exponent(r, 110, 123); }},
    // Significands of nearly two and one sign: sums beyond 2^31 units.
    {"near_two", [](Random& r, Half) { return static_cast<std::uint16_t>(0x3fff - r() % 3); },
     [](Random& r, Half) { return static_cast<std::uint16_t>(0x3fff - r() % 3); },
     [](Random& r) { return (static_cast<std::uint32_t>(r()) & 0x800fffff) | 0x3ff00000; }},
    {"integers", [](Random& r, Half half) { return to_half(static_cast<int>(r() % 9) - 4, half); },
     [](Random& r, Half half) { return to_half(static_cast<int>(r() % 9) - 4, half); },
     [](Random& r) { return to_word(static_cast<int>(r() % 65) - 32); }},
    {"infinities",
     [](Random& r, Half half) {
       return chance(r, 0.01) ? static_cast<std::uint16_t>(infinity(half) | zero(r)) : any_normal(r, half);
     },
     [](Random& r, Half half) { return chance(r, 0.05) ? zero(r) : any_normal(r, half); },
     [](Random& r) { return chance(r, 0.1) ? 0x7f800000u | zero(r) * 0x10000u : to_word(normal(r)); }},
    {"infinities_in_b", any_normal,
     [](Random& r, Half half) {
       return chance(r, 0.01) ? static_cast<std::uint16_t>(infinity(half) | zero(r)) : any_normal(r, half);
     },
     [](Random& r) { return to_word(normal(r)); }},
    {"accumulator_not_finite", any_normal, any_normal,
     [](Random& r) {
       return chance(r, 0.1) ? 0x7f800000u | (static_cast<std::uint32_t>(r()) & 0x80000001)
                             : to_word(normal(r));
     }},
};

// Operands of one kind; in half of the rounds the second half of k takes back the first, up to a few last
// bits.
inline void fill(Random& random, const OperandKind& kind, int round, Half a_half, Half b_half, Operands* x) {
  for (auto& row : x->a) {
    for (auto& value : row) value = kind.a(random, a_half);
  }
  for (auto& column : x->b) {
    for (auto& value : column) value = kind.b(random, b_half);
  }
  for (auto& column : x->c) {
    for (auto& word : column) word = kind.c(random);
  }
  if (kind.finish != nullptr) kind.finish(random, x);
  if (round % 4 < 2) return;
  for (auto& row : x->a) {
    for (int k = 0; k < 8; ++k)
      row[k + 8] = static_cast<std::uint16_t>(row[k] ^ 0x8000 ^ chance(random, 0.1));
  }
  for (auto& column : x->b) std::copy(column, column + 8, column + 8);
}

}  // namespace flashback::emulator
