// The vectors that matrix arithmetic computes with: the widest that the including file is compiled for. For
// matrix_arithmetic_v3.cpp and _v4.cpp alone: all names of the headers that build on this one are local to
// the file, since the linker must never merge code for AVX-512 with what runs elsewhere.
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
using Byte = std::uint8_t __attribute__((vector_size(kVectorBytes), may_alias));
using Unsigned = std::uint32_t __attribute__((vector_size(kVectorBytes), may_alias));
using Double = double __attribute__((vector_size(kVectorBytes), may_alias));
using Long = std::int64_t __attribute__((vector_size(kVectorBytes), may_alias));
// As many elements as a vector of twice their size has.
using FloatHalf = float __attribute__((vector_size(kVectorBytes / 2), may_alias));
using IntHalf = std::int32_t __attribute__((vector_size(kVectorBytes / 2), may_alias));
using ShortHalf = std::int16_t __attribute__((vector_size(kVectorBytes / 2), may_alias));
using ByteHalf = std::uint8_t __attribute__((vector_size(kVectorBytes / 2), may_alias));

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
inline Int widen(const std::uint8_t* bytes) {
#ifdef __AVX512F__
  return Int(_mm512_maskz_cvtepu8_epi32(0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(bytes))));
#else
  return Int(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
#endif
}

inline bool holds(LaneGroups groups, int lane) {
  return groups >> (lane / 16) & 1;
}

}  // namespace
}  // namespace flashback::emulator
