// The fused step, in the widest vectors that the including file is compiled for. Included by
// matrix_arithmetic_v3.cpp and _v4.cpp alone.
//
// The control register of the SSE unit asks for rounding toward zero throughout: products, scalings and sums
// of integers are exact whatever the mode, and the one rounding left is the cut to fp32.
#pragma once

#include "emulator/machine/units/matrix_operands.h"

namespace flashback::emulator {
namespace {

using Byte = std::uint8_t __attribute__((vector_size(kVectorBytes), may_alias));
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
    b_exponent[k] = exponent_of(b_bits, b.range.smallest_exponent);
    largest = larger(
        largest,
        IntHalf(exponent_of(load<IntHalf>(&a.value[k][lane]), a.range.smallest_exponent) + b_exponent[k]));
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

void wide_step(const RowBlock& a, const ColumnBlock& b, int first, int columns, int lane, int vectors,
               bool accumulate, std::uint32_t (*d)[kMatrixLanes]) {
  for (int column = first; column < first + columns; ++column) {
    for (int at = lane; at < lane + vectors * kWords; at += kWords / 2) {
      std::uint32_t* out = &d[column][at];
      store(out, wide_step(a, b, column, at, accumulate ? load<IntHalf>(out) : IntHalf{}));
    }
  }
}

// ---- Exponents E for which terms, sums and results are exact in int32 and fp32.
//
// A term is less than 4 * 2^25 units of 2^(E-25), so the sum of 16 products fits int32 always and with C
// unless the significands of A are all near two. For E >= -101 the unit is a normal number, so no result is
// subnormal, and products that fp32 cannot hold are below the unit and count nothing; for E <= 121 nothing
// overflows.
//
// Exponents are biased as fp32 has them, and in the 32-bit vectors they stand where fp32 has them: in bits 23
// up.

constexpr int kBias = 127;
constexpr int kLowest = kBias - 101, kHighest = kBias + 121;
constexpr int kColumnsAtOnce = 4;

// A byte for each lane of 32 bits.
inline Int widen(const std::uint8_t* bytes) {
#ifdef __AVX512F__
  return Int(_mm512_maskz_cvtepu8_epi32(0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(bytes))));
#else
  return Int(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
#endif
}

inline int smallest_byte(Byte bytes) {
  int smallest = 255;
  for (int i = 0; i < kVectorBytes; ++i) smallest = bytes[i] < smallest ? bytes[i] : smallest;
  return smallest;
}

// For kColumnsAtOnce columns and all lanes, the largest sum of two heights. The return value is the least of
// them over the lanes in use.
inline int largest_heights(const RowBlock& a, const ColumnBlock& b, int first, const std::uint8_t* unused,
                           std::uint8_t (*heights)[kMatrixLanes]) {
  constexpr int kVectors = kMatrixLanes / kVectorBytes;
  constexpr int kColumns = 8 / kVectors;  // 8 maxima stay in registers
  Byte least = Byte{} + std::uint8_t{255};
  for (int column = 0; column < kColumnsAtOnce; column += kColumns) {
    const std::uint32_t(*words)[kMatrixDepth] = &b.height[first + column];
    Byte largest[kColumns][kVectors] = {};
#pragma GCC unroll 1
    for (int k = 0; k < kMatrixDepth; ++k) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        Unsigned row = load<Unsigned>(&a.height[k][v * kVectorBytes]);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) {
          largest[c][v] = larger(largest[c][v], Byte(row + words[c][k]));  // no byte carries into the next
        }
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        store(&heights[column + c][v * kVectorBytes], largest[c][v]);
        Byte used = largest[c][v] | load<Byte>(unused + v * kVectorBytes);
        least = least < used ? least : used;
      }
    }
  }
  return smallest_byte(least);
}

// The largest exponent of C and the products whose heights add up to `height`: what it is where heights are
// exact and the products are in range.
inline Int largest_exponent(Int height, Int base, Int c) {
  return larger(Int((height << 23) + base), Int(c & kInfinity));
}

// And where they need not be, except in lanes that hold zeros only: infinity's exponent asks for the wide
// path. A height that may be too large is of no account where C has a larger exponent.
inline Int largest_exponent_or_unknown(Int height, Int base, Int zeros, Int c) {
  Int exponent = largest_exponent(height, base, c);
  Int unknown = ((height <= kTop) & (exponent > (c & kInfinity))) | (exponent < kLowest << 23);
  return unknown & ~zeros ? Int{} + kInfinity : exponent;
}

// sum += products of kColumns columns and kVectors vectors of lanes, as many as registers hold.
template <int kColumns, int kVectors>
inline void add_products(const float (*a)[kMatrixLanes], const float (*b)[kMatrixDepth],
                         const Float (*scale)[kVectors], Int (*sum)[kVectors]) {
  // Not unrolled: the compiler would gather all elements of b first and spill them.
#pragma GCC unroll 1
  for (int k = 0; k < kMatrixDepth; ++k) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Float product = load<Float>(&a[k][v * kWords]) * b[c][k];
        sum[c][v] += __builtin_convertvector(product * scale[c][v], Int);
      }
    }
  }
}

// Lanes that hold zeros only.
inline Int zeros(const RowBlock& a, int lane) {
  return widen(&a.all_zero[lane]) != 0;
}

// What all columns have in common: the sum of heights stands for an exponent that is `base` higher.
struct LaneFacts {
  alignas(kVectorBytes) std::int32_t base[kMatrixLanes];     // biased and shifted as in fp32
  alignas(kVectorBytes) std::uint8_t ignored[kMatrixLanes];  // 255: not in use, or no product other than zero
  bool all_zero[kMatrixLanes / kWords];                      // of each vector of lanes
  bool some_zero[kMatrixLanes / kWords];
  bool in_range;  // an exact sum of heights never stands for an exponent below kLowest
};

inline void find_lane_facts(const RowBlock& a, const ColumnBlock& b, LaneGroups groups, LaneFacts* facts) {
  Int lowest{};
  const int common = b.range.largest_exponent - 2 * kTop + kBias;
  for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
    Int zero = zeros(a, lane);
    facts->all_zero[lane / kWords] = !any(~zero);
    facts->some_zero[lane / kWords] = any(zero);
    Int base = (load<Int>(&a.largest_exponent[lane]) + common) << 23;
    base = zero ? Int{} + (kLowest << 23) : base;
    store(&facts->base[lane], base);
    lowest = lowest < base ? lowest : base;
    for (int i = lane; i < lane + kWords; ++i) facts->ignored[i] = holds(groups, i) ? a.all_zero[i] : 255;
  }
  facts->in_range = !any(Int(lowest < (kLowest - kTop - 1) * (1 << 23)));
}

// C as the sum of nothing else: minus zero becomes zero.
inline Int alone(Int c) {
  return (c & ~kSign) == 0 ? Int{} : c;
}

// kColumns columns, kVectors vectors of lanes from `lane`. False, with nothing done, when an exponent is out
// of range.
template <int kColumns, int kVectors, bool kNear>
inline bool narrow_step(const RowBlock& a, const float (*b)[kMatrixDepth], int lane, bool accumulate,
                        const LaneFacts& facts, const std::uint8_t (*heights)[kMatrixLanes],
                        std::uint32_t (*d)[kMatrixLanes]) {
  Int exponent[kColumns][kVectors], sum[kColumns][kVectors];
  Float scale[kColumns][kVectors];
  Int largest{};
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int at = lane + v * kWords;
      sum[c][v] = accumulate ? load<Int>(&d[c][at]) : Int{};
      Int height = widen(&heights[c][at]), base = load<Int>(&facts.base[at]);
      exponent[c][v] = kNear ? largest_exponent(height, base, sum[c][v])
                             : largest_exponent_or_unknown(height, base, zeros(a, at), sum[c][v]);
      largest = larger(largest, exponent[c][v]);
    }
  }
  if (any(Int(largest > kHighest << 23))) return false;
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      scale[c][v] = Float(Unsigned{} + ((2u * kBias + kFractionBits) << 23) - Unsigned(exponent[c][v]));
      sum[c][v] = __builtin_convertvector(Float(sum[c][v]) * scale[c][v], Int);
    }
  }
  add_products<kColumns, kVectors>(reinterpret_cast<const float(*)[kMatrixLanes]>(&a.value[0][lane]), b,
                                   scale, sum);
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const int at = lane + v * kWords;
      Float unit = Float(exponent[c][v] - (kFractionBits << 23));
      Int result = Int(__builtin_convertvector(sum[c][v], Float) * unit);
      if constexpr (!kNear) {
        result = zeros(a, at) ? alone(accumulate ? load<Int>(&d[c][at]) : Int{}) : result;
      }
      store(&d[c][at], result);
    }
  }
  return true;
}

inline bool all(const bool* of, int count) {
  return count == 1 ? of[0] : of[0] && all(of + 1, count - 1);
}
inline bool any(const bool* of, int count) {
  return count == 1 ? of[0] : of[0] || any(of + 1, count - 1);
}

// D = C where no product is other than zero. False, with nothing done, when some C is infinite or not a
// number.
template <int kColumns, int kVectors>
inline bool zero_step(int lane, bool accumulate, std::uint32_t (*d)[kMatrixLanes]) {
  Int not_finite{};
  for (int c = 0; c < kColumns && accumulate; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      not_finite |= (load<Int>(&d[c][lane + v * kWords]) & kInfinity) == kInfinity;
    }
  }
  if (any(not_finite)) return false;
  for (int c = 0; c < kColumns; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      std::uint32_t* at = &d[c][lane + v * kWords];
      store(at, accumulate ? alone(load<Int>(at)) : Int{});
    }
  }
  return true;
}

// Not inlined: what it computes depends on the control register, of which the compiler knows nothing.
__attribute__((noinline)) void multiply_add_cut(const RowBlock& a, const ColumnBlock& b, bool accumulate,
                                                LaneGroups groups, std::uint32_t (*d)[kMatrixLanes]) {
  constexpr int kColumns = kVectorBytes == 64 ? 4 : 2, kVectors = kVectorBytes == 64 ? 1 : 2;
  if (!a.range.finite || !b.range.finite || a.near_two ||
      a.range.largest_exponent + b.range.largest_exponent + kBias > kHighest) {
    for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
      if (holds(groups, lane)) wide_step(a, b, 0, b.columns, lane, 1, accumulate, d);
    }
    return;
  }
  LaneFacts facts;
  find_lane_facts(a, b, groups, &facts);
  for (int column = 0; column < b.columns; column += kColumnsAtOnce) {
    alignas(kVectorBytes) std::uint8_t heights[kColumnsAtOnce][kMatrixLanes];
    const bool near = largest_heights(a, b, column, facts.ignored, heights) > kTop && facts.in_range;
    for (int c = 0; c < kColumnsAtOnce; c += kColumns) {
      const bool no_column = all(&b.all_zero[column + c], kColumns);
      for (int lane = 0; lane < kMatrixLanes; lane += kVectors * kWords) {
        if (!holds(groups, lane)) continue;
        const int vector = lane / kWords;
        bool done;
        if (no_column || all(&facts.all_zero[vector], kVectors)) {
          done = zero_step<kColumns, kVectors>(lane, accumulate, d + column + c);
        } else {
          const bool near_lanes = near && !any(&facts.some_zero[vector], kVectors);
          auto* step =
              near_lanes ? narrow_step<kColumns, kVectors, true> : narrow_step<kColumns, kVectors, false>;
          done = step(a, &b.value[column + c], lane, accumulate, facts, heights + c, d + column + c);
        }
        if (!done) wide_step(a, b, column + c, kColumns, lane, kVectors, accumulate, d);
      }
    }
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
