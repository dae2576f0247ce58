// The fused step for operands of any size, in double: every product and every scaling by a power of two is
// exact there, and the conversion to fp32 cuts, the processor being told to round toward zero.
#pragma once

#include "emulator/machine/units/matrix_operands.h"

namespace flashback::emulator {
namespace {

constexpr int kFractionBits = 25;      // of a term, below the largest exponent
constexpr int kExponentOfZero = -133;  // of a product or accumulator that is zero
constexpr int kSmallestNormal = -126;  // exponent of fp32
constexpr std::int32_t kInfinity = 0x7f800000;
constexpr std::int32_t kNan = 0x7fffffff;
constexpr std::int32_t kSign = static_cast<std::int32_t>(0x80000000);

// Exponent of fp32 numbers, at least `smallest`; far below all others for zero.
template <typename V>
inline V exponent_of(V bits, int smallest) {
  V exponent = larger(V(((bits >> 23) & 0xff) - 127), V{} + smallest);
  return (bits & ~kSign) == 0 ? V{} - 1000 : exponent;
}

inline Double power_of_two(IntHalf exponent) {
  return Double((__builtin_convertvector(exponent, Long) + 1023) << 52);
}

inline Double cut_to_integer(Double x) {
  return __builtin_convertvector(__builtin_convertvector(x, IntHalf), Double);
}

// Half a vector of lanes of A as the wide step wants them, for use with many columns.
struct WideRows {
  Double value[kMatrixDepth];
  IntHalf exponent[kMatrixDepth];
};

inline void widen_rows(const RowBlock& a, int lane, WideRows* rows) {
  for (int k = 0; k < kMatrixDepth; ++k) {
    FloatHalf value = load<FloatHalf>(&a.value[k][lane]);
    rows->value[k] = __builtin_convertvector(value, Double);
    rows->exponent[k] = exponent_of(IntHalf(value), a.range.smallest_exponent);
  }
}

// All terms finite. `to_odd`: the last bit of a sum is set where bits were cut.
inline IntHalf wide_step(const WideRows& a, const float* b, int smallest_exponent_of_b, IntHalf c,
                         bool to_odd) {
  IntHalf largest = larger(IntHalf{} + kExponentOfZero, exponent_of(c, kSmallestNormal));
  for (int k = 0; k < kMatrixDepth; ++k) {
    IntHalf b_exponent = exponent_of(IntHalf(FloatHalf{} + b[k]), smallest_exponent_of_b);
    largest = larger(largest, IntHalf(a.exponent[k] + b_exponent));
  }
  Double scale = power_of_two(kFractionBits - largest);
  Double sum = cut_to_integer(__builtin_convertvector(FloatHalf(c), Double) * scale);
  for (int k = 0; k < kMatrixDepth; ++k) {
    sum += cut_to_integer(a.value[k] * static_cast<double>(b[k]) * scale);
  }
  Double value = sum * power_of_two(largest - kFractionBits);
  IntHalf bits = IntHalf(__builtin_convertvector(value, FloatHalf));
  IntHalf magnitude = bits & ~kSign;
  if (to_odd) {
    const Double kept = __builtin_convertvector(FloatHalf(bits), Double);
    bits |= __builtin_convertvector(kept != value, IntHalf) & 1;
  }
  // Rounding toward zero gives the largest number where the sum is beyond fp32; the hardware gives infinity.
  IntHalf beyond = __builtin_convertvector(larger(value, -value) >= 0x1p128, IntHalf);
  bits = beyond ? kInfinity | (bits & kSign) : bits;
  return magnitude == 0 ? IntHalf{} : bits;  // never minus zero
}

// What a sum with infinite or undefined terms is; `otherwise` when there are none.
inline std::int32_t special_step(const RowBlock& a, const float* b, int lane, std::int32_t c,
                                 std::int32_t otherwise) {
  float c_value;
  __builtin_memcpy(&c_value, &c, sizeof c);
  double sum = c_value;
  for (int k = 0; k < kMatrixDepth; ++k) sum += static_cast<double>(a.value[k][lane]) * b[k];
  if (__builtin_isnan(sum)) return kNan;
  if (__builtin_isinf(sum)) return sum < 0 ? kInfinity | kSign : kInfinity;
  return otherwise;
}

// Columns from `first`, vectors of lanes from `lane`. Not inlined: it is rarely called.
__attribute__((noinline)) void wide_step(const RowBlock& a, const ColumnBlock& b, int first, int columns,
                                         int lane, int vectors, bool accumulate,
                                         std::uint32_t (*d)[kMatrixLanes], bool to_odd = false) {
  const bool finite = a.range.finite && b.range.finite;
  for (int at = lane; at < lane + vectors * kWords; at += kWords / 2) {
    WideRows rows;
    widen_rows(a, at, &rows);
    for (int column = first; column < first + columns; ++column) {
      IntHalf c = accumulate ? load<IntHalf>(&d[column][at]) : IntHalf{};
      IntHalf result = wide_step(rows, b.value[column], b.range.smallest_exponent, c, to_odd);
      for (int i = 0; i < kWords / 2; ++i) {
        if (finite && (c[i] & kInfinity) != kInfinity) continue;
        result[i] = special_step(a, b.value[column], at + i, c[i], result[i]);
      }
      store(&d[column][at], result);
    }
  }
}

}  // namespace
}  // namespace flashback::emulator
