// Preparation of operands: 16-bit values to fp32 and heights of exponents.
#pragma once

#include "emulator/machine/units/matrix_arithmetic.h"
#include "emulator/machine/units/matrix_vectors.h"

namespace flashback::emulator {
namespace {

inline Float widen(Half half, ShortHalf bits) {
  if (half == Half::kBf16) return Float(__builtin_convertvector(bits, Int) << 16);
#ifdef __AVX512F__
  return Float(_mm512_maskz_cvtph_ps(0xffff, __m256i(bits)));
#else
  return Float(_mm256_cvtph_ps(__m128i(bits)));
#endif
}

// Height of the largest exponent. The sum of two heights is exact above it: then neither can stand for a
// lower one.
constexpr int kTop = 63;

struct Format {
  int fraction_bits, largest_field, bias;  // largest_field: of infinity and NaN
};
constexpr Format format_of(Half half) {
  return half == Half::kBf16 ? Format{7, 0xff, 127} : Format{10, 0x1f, 15};
}

constexpr std::int16_t kMagnitude = 0x7fff;  // all but the sign

// Biased exponents of magnitudes, subnormals having that of the smallest normal number.
template <typename V>
inline V field_of(V magnitude, Format format) {
  return larger(V(magnitude >> format.fraction_bits), V{} + std::int16_t{1});
}

template <typename V>
inline V height_of(V magnitude, V largest_field, Format format) {
  V height = field_of(magnitude, format) - largest_field + std::int16_t{kTop};
  return magnitude == 0 ? V{} : larger(height, V{});
}

template <typename V>
inline BlockRange range_of(V magnitudes, Format format) {
  std::int16_t largest = 0;
  for (unsigned i = 0; i < sizeof(V) / 2; ++i) largest = magnitudes[i] > largest ? magnitudes[i] : largest;
  const int field = largest >> format.fraction_bits;
  return {(field == 0 ? 1 : field) - format.bias, 1 - format.bias, field != format.largest_field};
}

// values[k][lane] of all 128 lanes.
void prepare_rows(Half half, const std::uint16_t (*values)[kMatrixLanes], RowBlock* block) {
  const Format format = format_of(half);
  const auto fraction = static_cast<std::int16_t>((1 << format.fraction_bits) - 1);
  Short largest_of_all{}, near_two{};
  for (int lane = 0; lane < kMatrixLanes; lane += kHalves) {
    Short largest{}, fractions{};
    for (int k = 0; k < kMatrixDepth; ++k) {
      Short bits = load<Short>(&values[k][lane]);
      largest = larger(largest, Short(bits & kMagnitude));
      fractions += bits & fraction;
    }
    largest_of_all = larger(largest_of_all, largest);
    near_two |= fractions >= static_cast<std::int16_t>((kMatrixDepth - 1) << format.fraction_bits);
    store(&block->all_zero[lane], __builtin_convertvector(largest == 0, ByteHalf));

    Short largest_field = field_of(largest, format);
    alignas(kVectorBytes) std::int16_t exponents[kHalves];
    store(exponents, Short(largest_field - static_cast<std::int16_t>(format.bias)));
    for (int at = 0; at < kHalves; at += kWords) {
      store(&block->largest_exponent[lane + at],
            __builtin_convertvector(load<ShortHalf>(exponents + at), Int));
    }
    for (int k = 0; k < kMatrixDepth; ++k) {
      Short magnitude = load<Short>(&values[k][lane]) & kMagnitude;
      store(&block->height[k][lane],
            __builtin_convertvector(height_of(magnitude, largest_field, format), ByteHalf));
      for (int at = lane; at < lane + kHalves; at += kWords) {
        store(&block->value[k][at], widen(half, load<ShortHalf>(&values[k][at])));
      }
    }
  }
  block->range = range_of(largest_of_all, format);
  block->near_two = any(Int(near_two));
}

// ---- tf32, value by value

constexpr int kWordDepth = kMatrixDepth / 2;
constexpr int kWordFraction = 23, kWordBias = 127, kWordLargest = 0xff;

inline std::uint32_t tf32_word(const std::uint16_t (&values)[kMatrixDepth], int k) {
  std::uint32_t word;
  __builtin_memcpy(&word, &values[2 * k], sizeof word);
  return word & ~0x1fffu;
}

// Biased exponent of a word, a subnormal having that of the smallest normal number.
inline int field_of_word(std::uint32_t word) {
  const int field = static_cast<int>(word >> kWordFraction & kWordLargest);
  return field == 0 ? 1 : field;
}

inline std::uint8_t height_of_word(std::uint32_t word, int largest_field) {
  const int height = field_of_word(word) - largest_field + kTop;
  return static_cast<std::uint8_t>((word & 0x7fffffff) == 0 || height < 0 ? 0 : height);
}

inline float value_of_word(std::uint32_t word) {
  float value;
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}

inline int largest_field_of(const std::uint16_t (&values)[kMatrixDepth]) {
  int largest = 1;
  for (int k = 0; k < kWordDepth; ++k) {
    const int field = field_of_word(tf32_word(values, k));
    largest = field > largest ? field : largest;
  }
  return largest;
}

inline bool all_zero_words(const std::uint16_t (&values)[kMatrixDepth]) {
  std::uint32_t any = 0;
  for (int k = 0; k < kWordDepth; ++k) any |= tf32_word(values, k) & 0x7fffffff;
  return any == 0;
}

inline BlockRange word_range(int largest_field) {
  return {largest_field - kWordBias, 1 - kWordBias, largest_field != kWordLargest};
}

void rows_from_words(const std::uint16_t (*values)[kMatrixDepth], LaneGroups groups, RowBlock* block) {
  __builtin_memset(block, 0, sizeof *block);
  int largest_of_all = 1;
  for (int lane = 0; lane < kMatrixLanes; ++lane) {
    block->largest_exponent[lane] = 1 - kWordBias;
    block->all_zero[lane] = 255;
    if (!holds(groups, lane)) continue;
    const int largest = largest_field_of(values[lane]);
    largest_of_all = largest > largest_of_all ? largest : largest_of_all;
    block->largest_exponent[lane] = largest - kWordBias;
    block->all_zero[lane] = all_zero_words(values[lane]) ? 255 : 0;
    for (int k = 0; k < kWordDepth; ++k) {
      const std::uint32_t word = tf32_word(values[lane], k);
      block->value[k][lane] = value_of_word(word);
      block->height[k][lane] = height_of_word(word, largest);
    }
  }
  block->range = word_range(largest_of_all);  // eight significands sum to less than 16: never near_two
}

void columns_from_words(const std::uint16_t (*values)[kMatrixDepth], int columns, ColumnBlock* block) {
  int largest = 1;
  for (int column = 0; column < columns; ++column) {
    const int of_column = largest_field_of(values[column]);
    largest = of_column > largest ? of_column : largest;
  }
  for (int column = 0; column < columns; ++column) {
    block->all_zero[column] = all_zero_words(values[column]);
    for (int k = 0; k < kMatrixDepth; ++k) {
      const std::uint32_t word = k < kWordDepth ? tf32_word(values[column], k) : 0;
      block->value[column][k] = value_of_word(word);
      block->height[column][k] = height_of_word(word, largest) * 0x01010101u;
    }
  }
  block->range = word_range(largest);
  block->columns = columns;
}

// 8 x 8 transposition: to[j][i] = from[i][j].
inline void transpose_8x8(const std::uint16_t* from, int from_pitch, std::uint16_t* to, int to_pitch) {
  __m128i r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_pitch));
  const auto interleave_halves = [](const __m128i* in, __m128i* out) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = _mm_unpacklo_epi16(in[i], in[i + 4]);
      out[2 * i + 1] = _mm_unpackhi_epi16(in[i], in[i + 4]);
    }
  };
  interleave_halves(r, s);
  interleave_halves(s, r);
  interleave_halves(r, s);
  for (int i = 0; i < 8; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_pitch), s[i]);
}

void rows_from_k_major(Half half, const std::uint16_t (*values)[kMatrixDepth], LaneGroups groups,
                       RowBlock* block) {
  if (half == Half::kTf32) return rows_from_words(values, groups, block);
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
  if (half == Half::kTf32) return columns_from_words(values, columns, block);
  using Depth = std::int16_t __attribute__((vector_size(2 * kMatrixDepth), may_alias));
  const Format format = format_of(half);
  Depth largest{};
  for (int column = 0; column < columns; ++column) {
    Depth magnitude = load<Depth>(values[column]) & kMagnitude;
    largest = larger(largest, magnitude);
    block->all_zero[column] = _mm256_testz_si256(__m256i(magnitude), __m256i(magnitude));
  }
  block->range = range_of(largest, format);
  const Depth largest_field =
      Depth{} + static_cast<std::int16_t>(block->range.largest_exponent + format.bias);

  for (int column = 0; column < columns; ++column) {
    Depth height = height_of(Depth(load<Depth>(values[column]) & kMagnitude), largest_field, format);
    alignas(kVectorBytes) std::int16_t twice[kMatrixDepth];
    store(twice, Depth(height | height << 8));
    for (int k = 0; k < kMatrixDepth; k += kWords) {
      Int word = __builtin_convertvector(load<ShortHalf>(twice + k), Int);
      store(&block->height[column][k], Int(word | word << 16));
      store(&block->value[column][k], widen(half, load<ShortHalf>(&values[column][k])));
    }
  }
  block->columns = columns;
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
