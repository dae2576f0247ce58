// Preparation of operands: 16-bit values to fp32 and exponents, in the widest vectors that the including file
// is compiled for. Included by matrix_arithmetic_v3.cpp and _v4.cpp alone. All names are local to the file:
// the linker must never merge code for AVX-512 with what runs elsewhere.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "emulator/machine/units/matrix_arithmetic.h"

namespace flashback::emulator {
namespace {

#ifdef __AVX512F__
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif
constexpr int kWords = kVectorBytes / 4;   // lanes of a vector of 32-bit elements
constexpr int kHalves = kVectorBytes / 2;  // lanes of a vector of 16-bit elements
using Float = float __attribute__((vector_size(kVectorBytes), may_alias));
using Int = std::int32_t __attribute__((vector_size(kVectorBytes), may_alias));
using Short = std::int16_t __attribute__((vector_size(kVectorBytes), may_alias));
using ByteHalf =
    std::int8_t __attribute__((vector_size(kVectorBytes / 2), may_alias));  // a byte for each of Short
using ShortHalf = std::int16_t __attribute__((vector_size(kVectorBytes / 2), may_alias));

template <typename V>
inline V load(const void* from) {
  return *static_cast<const V*>(from);
}
template <typename V>
inline void store(void* to, V v) {
  *static_cast<V*>(to) = v;
}
template <typename V>
inline V larger(V a, V b) {
  return a > b ? a : b;
}

inline bool any(Int mask) {
#ifdef __AVX512F__
  return _mm512_test_epi32_mask(__m512i(mask), __m512i(mask)) != 0;
#else
  return _mm256_testz_si256(__m256i(mask), __m256i(mask)) == 0;
#endif
}

// A byte for each lane of 32 bits.
inline Int widen(const std::int8_t* bytes) {
#ifdef __AVX512F__
  return Int(_mm512_maskz_cvtepi8_epi32(0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(bytes))));
#else
  return Int(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
#endif
}

// Exponents of a block lie between kFarBelow and 0, relative to the largest of their lane or column; kZero
// marks a zero. Two of them add without overflow of a byte, and a sum that is not less than -62 is exact.
constexpr std::int16_t kFarBelow = -63;
constexpr std::int16_t kZero = -64;
// Largest exponent of a lane or column that holds zeros only: below that of any number.
constexpr int kAllZero = -127;

struct Format {
  int fraction_bits, exponent_mask, bias;
};
constexpr Format format_of(Half half) {
  return half == Half::kBf16 ? Format{7, 0xff, 127} : Format{10, 0x1f, 15};
}

// Exponents of 16-bit numbers, subnormals having that of the smallest normal number; kAllZero for zero.
template <typename V>
inline V exponent_of(V bits, Format format) {
  V field = (bits >> format.fraction_bits) & static_cast<std::int16_t>(format.exponent_mask);
  V exponent = larger(field, V{} + std::int16_t{1}) - static_cast<std::int16_t>(format.bias);
  return (bits & std::int16_t{0x7fff}) == 0 ? V{} + static_cast<std::int16_t>(kAllZero) : exponent;
}

template <typename V>
inline V relative_exponent(V exponent, V largest) {
  V below = larger(V(exponent - largest), V{} + kFarBelow);
  return exponent == static_cast<std::int16_t>(kAllZero) ? V{} + kZero : below;
}

inline Float widen(Half half, ShortHalf bits) {
  if (half == Half::kBf16) {
    return Float(__builtin_convertvector(bits, Int) << 16);
  }
#ifdef __AVX512F__
  return Float(_mm512_maskz_cvtph_ps(0xffff, __m256i(bits)));
#else
  return Float(_mm256_cvtph_ps(__m128i(bits)));
#endif
}

// values[k][lane] of all 128 lanes.
void prepare_rows(Half half, const std::uint16_t (*values)[kMatrixLanes], RowBlock* block) {
  const Format format = format_of(half);
  const std::int16_t fraction = static_cast<std::int16_t>((1 << format.fraction_bits) - 1);
  Short largest_of_all = Short{} + static_cast<std::int16_t>(kAllZero), near_two{};
  for (int lane = 0; lane < kMatrixLanes; lane += kHalves) {
    Short largest = Short{} + static_cast<std::int16_t>(kAllZero);
    Short fractions{};  // 16 significands that sum to 31 have fractions that sum to 15
    for (int k = 0; k < kMatrixDepth; ++k) {
      Short bits = load<Short>(&values[k][lane]);
      largest = larger(largest, exponent_of(bits, format));
      fractions += bits & fraction;
    }
    largest_of_all = larger(largest_of_all, largest);
    near_two |= fractions >= static_cast<std::int16_t>(15 << format.fraction_bits);
    for (int k = 0; k < kMatrixDepth; ++k) {
      Short exponent = exponent_of(load<Short>(&values[k][lane]), format);
      store(&block->exponent[k][lane],
            __builtin_convertvector(relative_exponent(exponent, largest), ByteHalf));
      for (int half_vector = 0; half_vector < 2; ++half_vector) {
        int at = lane + half_vector * kWords;
        store(&block->value[k][at], widen(half, load<ShortHalf>(&values[k][at])));
      }
    }
    alignas(kVectorBytes) std::int16_t words[kHalves];
    store(words, largest);
    for (int half_vector = 0; half_vector < 2; ++half_vector) {
      store(&block->largest_exponent[lane + half_vector * kWords],
            __builtin_convertvector(load<ShortHalf>(words + half_vector * kWords), Int));
    }
  }
  block->largest_of_all = kAllZero;
  for (int i = 0; i < kHalves; ++i) {
    if (largest_of_all[i] > block->largest_of_all) block->largest_of_all = largest_of_all[i];
  }
  block->finite = block->largest_of_all <= format.bias;
  block->near_two = any(Int(near_two));
  block->smallest_exponent = 1 - format.bias;
}

// 8 x 8 transposition: to[j][i] = from[i][j].
inline void transpose_8x8(const std::uint16_t* from, int from_pitch, std::uint16_t* to, int to_pitch) {
  __m128i r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_pitch));
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
    s[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm_unpacklo_epi16(s[i], s[i + 4]);
    r[2 * i + 1] = _mm_unpackhi_epi16(s[i], s[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
    s[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
  }
  for (int i = 0; i < 8; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_pitch), s[i]);
}

inline bool holds(LaneGroups groups, int lane) {
  return groups >> (lane / 16) & 1;
}

void rows_from_k_major(Half half, const std::uint16_t (*values)[kMatrixDepth], LaneGroups groups,
                       RowBlock* block) {
  alignas(kVectorBytes) std::uint16_t by_k[kMatrixDepth][kMatrixLanes] = {};
  for (int lane = 0; lane < kMatrixLanes; lane += 8) {
    if (!holds(groups, lane)) continue;
    for (int k = 0; k < kMatrixDepth; k += 8) {
      transpose_8x8(&values[lane][k], kMatrixDepth, &by_k[k][lane], kMatrixLanes);
    }
  }
  prepare_rows(half, by_k, block);
}

void rows_from_mn_major(Half half, const std::uint16_t (*values)[kMatrixLanes], LaneGroups groups,
                        RowBlock* block) {
  if (groups == kAllLaneGroups) return prepare_rows(half, values, block);
  alignas(kVectorBytes) std::uint16_t held[kMatrixDepth][kMatrixLanes] = {};
  for (int k = 0; k < kMatrixDepth; ++k) {
    for (int lane = 0; lane < kMatrixLanes; lane += 16) {
      if (holds(groups, lane)) __builtin_memcpy(&held[k][lane], &values[k][lane], 16 * sizeof(std::uint16_t));
    }
  }
  prepare_rows(half, held, block);
}

void rows_from_tensor_memory(Half half, const std::uint32_t (*columns)[kMatrixLanes], LaneGroups groups,
                             RowBlock* block) {
  alignas(kVectorBytes) std::uint16_t by_k[kMatrixDepth][kMatrixLanes] = {};
  for (int c = 0; c < kMatrixDepth / 2; ++c) {
    for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
      if (!holds(groups, lane)) continue;
      Int pair = load<Int>(&columns[c][lane]);
      store(&by_k[2 * c][lane], __builtin_convertvector(pair, ShortHalf));
      store(&by_k[2 * c + 1][lane], __builtin_convertvector(pair >> 16, ShortHalf));
    }
  }
  prepare_rows(half, by_k, block);
}

// values[column][k]
void columns_from_k_major(Half half, const std::uint16_t (*values)[kMatrixDepth], int columns,
                          ColumnBlock* block) {
  using Depth = std::int16_t __attribute__((vector_size(2 * kMatrixDepth), may_alias));
  using DepthBytes = std::int8_t __attribute__((vector_size(kMatrixDepth), may_alias));
  const Format format = format_of(half);
  int largest_of_all = kAllZero;
  for (int column = 0; column < columns; ++column) {
    Depth bits;
    __builtin_memcpy(&bits, values[column], sizeof bits);
    Depth exponent = exponent_of(bits, format);
    // The largest of 16 by the one instruction that reduces: the smallest of 8 unsigned 16-bit numbers.
    __m128i larger_of_halves = _mm_max_epi16(_mm256_castsi256_si128(__m256i(exponent)),
                                             _mm256_extracti128_si256(__m256i(exponent), 1));
    __m128i smallest = _mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(0x7fff), larger_of_halves));
    std::int16_t largest = static_cast<std::int16_t>(0x7fff - _mm_extract_epi16(smallest, 0));
    block->largest_exponent[column] = largest;
    if (largest > largest_of_all) largest_of_all = largest;
    store(block->exponent[column],
          __builtin_convertvector(relative_exponent(exponent, Depth{} + largest), DepthBytes));
    for (int k = 0; k < kMatrixDepth; k += kWords) {
      ShortHalf part;
      __builtin_memcpy(&part, &values[column][k], sizeof part);
      store(&block->value[column][k], widen(half, part));
    }
  }
  block->columns = columns;
  block->largest_of_all = largest_of_all;
  block->finite = largest_of_all <= format.bias;
  block->smallest_exponent = 1 - format.bias;
}

void columns_from_mn_major(Half half, const std::uint16_t (*values)[kMatrixColumns], int columns,
                           ColumnBlock* block) {
  alignas(kVectorBytes) std::uint16_t by_column[kMatrixColumns][kMatrixDepth];
  for (int column = 0; column < columns; column += 8) {
    for (int k = 0; k < kMatrixDepth; k += 8) {
      transpose_8x8(&values[k][column], kMatrixColumns, &by_column[column][k], kMatrixDepth);
    }
  }
  columns_from_k_major(half, by_column, columns, block);
}

}  // namespace
}  // namespace flashback::emulator
