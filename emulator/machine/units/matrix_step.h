// The fused step, in the widest vectors that the including file is compiled for. Included by
// matrix_arithmetic_v3.cpp and _v4.cpp alone.
//
// The control register of the SSE unit asks for rounding toward zero throughout: products, scalings and sums
// of integers are exact whatever the mode, and the one rounding left is the cut to fp32.
#pragma once

#include "emulator/machine/units/matrix_operands.h"

namespace flashback::emulator {
namespace {

using Byte = std::int8_t __attribute__((vector_size(kVectorBytes), may_alias));
using Unsigned = std::uint32_t __attribute__((vector_size(kVectorBytes), may_alias));
using Double = double __attribute__((vector_size(kVectorBytes), may_alias));
using Long = std::int64_t __attribute__((vector_size(kVectorBytes), may_alias));
using FloatHalf = float __attribute__((vector_size(kVectorBytes / 2), may_alias));
using IntHalf = std::int32_t __attribute__((vector_size(kVectorBytes / 2), may_alias));

constexpr int kFractionBits = 25;      // of a term, below the largest exponent
constexpr int kExponentOfZero = -133;  // of a product or accumulator that is zero
constexpr int kSmallestNormal = -126;  // exponent of fp32
constexpr std::int32_t kInfinity = 0x7f800000;
constexpr std::int32_t kNan = 0x7fffffff;
constexpr std::int32_t kSign = static_cast<std::int32_t>(0x80000000);

// ---- Any operands, in double: every product and every scaling by a power of two is exact there.

// Exponent of fp32 numbers, at least `smallest`; far below all others for zero.
inline IntHalf exponent_of(IntHalf bits, int smallest) {
  IntHalf exponent = larger(IntHalf(((bits >> 23) & 0xff) - 127), IntHalf{} + smallest);
  return (bits & 0x7fffffff) == 0 ? IntHalf{} - 1000 : exponent;
}

inline Double power_of_two(IntHalf exponent) {
  return Double((__builtin_convertvector(exponent, Long) + 1023) << 52);
}

inline Double cut_to_integer(Double x) {
  return __builtin_convertvector(__builtin_convertvector(x, IntHalf), Double);
}

IntHalf wide_step(const RowBlock& a, const ColumnBlock& b, int column, int lane, IntHalf c) {
  IntHalf b_exponent[kMatrixDepth];
  IntHalf largest = larger(IntHalf{} + kExponentOfZero, exponent_of(c, kSmallestNormal));
  for (int k = 0; k < kMatrixDepth; ++k) {
    IntHalf b_bits = IntHalf(FloatHalf{} + b.value[column][k]);
    b_exponent[k] = exponent_of(b_bits, b.smallest_exponent);
    largest = larger(
        largest, IntHalf(exponent_of(load<IntHalf>(&a.value[k][lane]), a.smallest_exponent) + b_exponent[k]));
  }
  Double scale = power_of_two(kFractionBits - largest);
  Double c_wide = __builtin_convertvector(FloatHalf(c), Double);
  Double sum = cut_to_integer(c_wide * scale);
  Double plain = c_wide;  // only for whether it is infinite or not a number
  for (int k = 0; k < kMatrixDepth; ++k) {
    Double product = __builtin_convertvector(load<FloatHalf>(&a.value[k][lane]), Double) *
                     static_cast<double>(b.value[column][k]);
    sum += cut_to_integer(product * scale);
    plain += product;
  }
  Double value = sum * power_of_two(largest - kFractionBits);
  IntHalf bits = IntHalf(__builtin_convertvector(value, FloatHalf));
  bits = (bits & 0x7fffffff) == 0 ? IntHalf{} : bits;  // never minus zero
  // Infinity and NaN among the terms decide alone; a finite sum beyond fp32 is infinite.
  Long beyond = ~(larger(value, -value) < 0x1p128) | ~(larger(plain, -plain) < __builtin_inf());
  if (any(Int(beyond))) {
    for (int i = 0; i < kWords / 2; ++i) {
      if (!beyond[i]) continue;
      double is = __builtin_isfinite(plain[i]) ? value[i] : plain[i];
      bits[i] = __builtin_isnan(is) ? kNan : is < 0 ? kInfinity | kSign : kInfinity;
    }
  }
  return bits;
}

void wide_step(const RowBlock& a, const ColumnBlock& b, int column, int lane, bool accumulate,
               std::uint32_t* d) {
  for (int at = lane; at < lane + kWords; at += kWords / 2) {
    store(d + at, wide_step(a, b, column, at, accumulate ? load<IntHalf>(d + at) : IntHalf{}));
  }
}

// ---- Exponents E for which terms, sums and results are exact in int32 and fp32.
//
// A term is less than 4 * 2^25 units of 2^(E-25), so the sum of 16 products fits int32 always and with C
// unless the significands of A are all near two. For E >= -101 the unit is a normal number, so no result is
// subnormal, and products that fp32 cannot hold are below the unit and count nothing; for E <= 121 nothing
// overflows.
//
// Exponents are kept where fp32 has them: in bits 23 up, plus 127.

constexpr int kColumnsAtOnce = 4;
constexpr int kBias = 127;
constexpr int kSmallestExponent = -101, kLargestExponent = 121;
constexpr std::uint32_t kLowest = std::uint32_t{kBias + kSmallestExponent} << 23;
constexpr std::uint32_t kHighest = std::uint32_t{kBias + kLargestExponent} << 23;

// For each of 4 columns and all lanes, the largest of the sums of relative exponents. True when some lane of
// the groups has one that may be too large: less than -62.
inline bool largest_below(const RowBlock& a, const ColumnBlock& b, int column,
                          const std::int8_t* unused_lanes, std::int8_t (*below)[kMatrixLanes]) {
  Byte lowest{};
  for (int lane = 0; lane < kMatrixLanes; lane += kVectorBytes) {
    Byte largest[kColumnsAtOnce];
    for (int c = 0; c < kColumnsAtOnce; ++c) largest[c] = Byte{} + std::int8_t{-128};
#pragma GCC unroll 1
    for (int k = 0; k < kMatrixDepth; ++k) {
      Byte row = load<Byte>(&a.exponent[k][lane]);
#pragma GCC unroll 4
      for (int c = 0; c < kColumnsAtOnce; ++c) {
        largest[c] = larger(largest[c], Byte(row + b.exponent[column + c][k]));
      }
    }
    for (int c = 0; c < kColumnsAtOnce; ++c) {
      store(&below[c][lane], largest[c]);
      Byte used = larger(largest[c], load<Byte>(unused_lanes + lane));
      lowest = lowest < used ? lowest : used;
    }
  }
  return any(Int(lowest <= static_cast<std::int8_t>(kFarBelow)));
}

// Where the largest sum of relative exponents may be too large, it is of no account if C has a larger
// exponent or all products are zero; other lanes are sent to the wide path by an exponent outside its range.
inline Int resolve_far_below(Int products, Int below, Int all_zero, Int c) {
  Int c_exponent = c & kInfinity;
  Int far = below <= kFarBelow;
  Int exponent = far & ~all_zero & (products > c_exponent) ? Int{} + kInfinity : larger(products, c_exponent);
  exponent = far & all_zero ? c_exponent : exponent;
  return all_zero & ((c & ~kSign) == 0) ? Int{} + (kBias << 23) : exponent;
}

template <bool kFarApart>
inline void step_columns(const RowBlock& a, const ColumnBlock& b, int column, bool accumulate,
                         LaneGroups groups, const std::int8_t (*below)[kMatrixLanes],
                         std::uint32_t (*d)[kMatrixLanes]) {
  for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
    if (!holds(groups, lane)) continue;
    Int row_largest = load<Int>(&a.largest_exponent[lane]);
    Int row_exponent = (row_largest + kBias) << 23;
    Int exponent[kColumnsAtOnce], sum[kColumnsAtOnce];
    Unsigned outside{};
#pragma GCC unroll 4
    for (int c = 0; c < kColumnsAtOnce; ++c) {
      Int below_c = widen(&below[c][lane]);
      Int products = (below_c << 23) + (b.largest_exponent[column + c] << 23) + row_exponent;
      sum[c] = accumulate ? load<Int>(&d[c][lane]) : Int{};
      if constexpr (kFarApart) {
        Int all_zero = (row_largest == kAllZero) | (Int{} + b.largest_exponent[column + c] == kAllZero);
        exponent[c] = resolve_far_below(products, below_c, all_zero, sum[c]);
      } else {
        exponent[c] = larger(products, Int(sum[c] & kInfinity));
      }
      outside = larger(outside, Unsigned(exponent[c]) - kLowest);
    }
    if (any(Int(outside > kHighest - kLowest))) {
      for (int c = 0; c < kColumnsAtOnce; ++c) wide_step(a, b, column + c, lane, accumulate, d[c]);
      continue;
    }
    Float scale[kColumnsAtOnce];
#pragma GCC unroll 4
    for (int c = 0; c < kColumnsAtOnce; ++c) {
      scale[c] = Float(Unsigned{} + ((2u * kBias + kFractionBits) << 23) - Unsigned(exponent[c]));
      sum[c] = __builtin_convertvector(Float(sum[c]) * scale[c], Int);
    }
    // Not unrolled: the compiler would gather all elements of b first and spill them.
#pragma GCC unroll 1
    for (int k = 0; k < kMatrixDepth; ++k) {
      Float row = load<Float>(&a.value[k][lane]);
#pragma GCC unroll 4
      for (int c = 0; c < kColumnsAtOnce; ++c) {
        sum[c] += __builtin_convertvector(row * b.value[column + c][k] * scale[c], Int);
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kColumnsAtOnce; ++c) {
      Float unit = Float(exponent[c] - (kFractionBits << 23));
      store(&d[c][lane], __builtin_convertvector(sum[c], Float) * unit);
    }
  }
}

// Not inlined: what it computes depends on the control register, of which the compiler knows nothing.
__attribute__((noinline)) void multiply_add_cut(const RowBlock& a, const ColumnBlock& b, bool accumulate,
                                                LaneGroups groups, std::uint32_t (*d)[kMatrixLanes]) {
  if (!a.finite || !b.finite || a.near_two || a.largest_of_all + b.largest_of_all > kLargestExponent) {
    for (int column = 0; column < b.columns; ++column) {
      for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
        if (holds(groups, lane)) wide_step(a, b, column, lane, accumulate, d[column]);
      }
    }
    return;
  }
  alignas(kVectorBytes) std::int8_t unused_lanes[kMatrixLanes];
  for (int lane = 0; lane < kMatrixLanes; ++lane) unused_lanes[lane] = holds(groups, lane) ? -128 : 0;
  for (int column = 0; column < b.columns; column += kColumnsAtOnce) {
    alignas(kVectorBytes) std::int8_t below[kColumnsAtOnce][kMatrixLanes];
    bool far_apart = largest_below(a, b, column, unused_lanes, below);
    auto step = far_apart ? step_columns<true> : step_columns<false>;
    step(a, b, column, accumulate, groups, below, d + column);
  }
}

void multiply_add(const RowBlock& a, const ColumnBlock& b, bool accumulate, LaneGroups groups,
                  std::uint32_t (*d)[kMatrixLanes]) {
  // All exceptions masked, subnormals kept, rounding toward zero.
  constexpr unsigned kCut = _MM_MASK_MASK | _MM_ROUND_TOWARD_ZERO;
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(kCut);
  multiply_add_cut(a, b, accumulate, groups, d);
  _mm_setcsr(saved);
}

}  // namespace
}  // namespace flashback::emulator
