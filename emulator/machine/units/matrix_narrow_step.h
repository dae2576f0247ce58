// The fused step for exponents E for which terms, sums and results are exact in int32 and fp32.
//
// A term is less than 4 * 2^25 units of 2^(E-25), so the sum of 16 products fits int32 always and with C
// unless the significands of A are all near two. For E >= -101 the unit is a normal number, so no result is
// subnormal, and products that fp32 cannot hold are below the unit and count nothing; for E <= 121 nothing
// overflows.
//
// Exponents are biased as fp32 has them, and in the 32-bit vectors they stand where fp32 has them: in bits 23
// up.
#pragma once

#include "emulator/machine/units/matrix_wide_step.h"

namespace flashback::emulator {
namespace {

constexpr int kBias = 127;
constexpr int kLowest = kBias - 101, kHighest = kBias + 121;
constexpr int kColumnsAtOnce = 4;

inline int smallest_byte(Byte bytes) {
  int smallest = 255;
  for (int i = 0; i < kVectorBytes; ++i) smallest = bytes[i] < smallest ? bytes[i] : smallest;
  return smallest;
}

// For kColumnsAtOnce columns and all lanes, the largest sum of two heights. The return value is the least of
// them over the lanes that hold more than zeros.
inline int largest_heights(const RowBlock& a, const ColumnBlock& b, int first,
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
        Byte counted = largest[c][v] | load<Byte>(&a.all_zero[v * kVectorBytes]);
        least = least < counted ? least : counted;
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
  alignas(kVectorBytes) std::int32_t base[kMatrixLanes];  // biased and shifted as in fp32
  bool all_zero[kMatrixLanes / kWords];                   // of each vector of lanes
  bool some_zero[kMatrixLanes / kWords];
  bool in_range;  // an exact sum of heights never stands for an exponent below kLowest
};

inline void find_lane_facts(const RowBlock& a, const ColumnBlock& b, LaneFacts* facts) {
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

}  // namespace
}  // namespace flashback::emulator
