// The arithmetic of a softmax thread: one query, a tile of keys.
#pragma once

#include "kernels/ptx/math.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/shared/exp2.cuh"
#include "kernels/sm100/forward/config.h"

namespace flashback::sm100::forward {

// Scores of a query, in blocks of 32 keys.
inline constexpr int kBlockKeys = 32, kBlocks = kKeyRows / kBlockKeys;
using Block = float[kBlockKeys];
using Scores = Block[kBlocks];

// The query's softmax so far: weights are exp2(score * scale_log2 - m).
struct Softmax {
  float largest = -INFINITY;  // the score that m stands for
  // m is rounded up, so that no weight exceeds 2^kLag whatever the scores. Before the first score it is so
  // low that the factor to any other is zero, and finite, so that a hidden score has the weight zero.
  float minus_m = 0x1.fffffep127f;
  ptx::F32x2 sums = 0;  // of the weights of even keys, and of odd ones

  __device__ float sum() const {
    float even, odd;
    ptx::unpair(even, odd, sums);
    return even + odd;
  }
};

// Takes the tile's scores into account; returns what O and the sum so far shrink by, 1 if m stays.
__device__ __forceinline__ float raise(Softmax& softmax, const Scores& s, float scale_log2) {
  float largest[kBlocks];
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    largest[b] = s[b][0];
#pragma unroll
    for (int i = 1; i < kBlockKeys; ++i) largest[b] = fmaxf(largest[b], s[b][i]);
  }
  const float most = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
  // Selected, so that the warp stays together. False where the query has seen no key yet: the difference is
  // not a number.
  const bool above = (most - softmax.largest) * scale_log2 > kLag;
  const float m = __fmul_ru(most, scale_log2);
  const float factor = above ? ptx::exp2(-softmax.minus_m - m) : 1;
  softmax.largest = above ? most : softmax.largest;
  softmax.minus_m = above ? -m : softmax.minus_m;
  softmax.sums = ptx::multiply(softmax.sums, ptx::pair(factor, factor));
  return factor;
}

// Scores become weights and are added to the sums. Every kPairsByPolynomial-th pair by polynomial, if any.
template <bool by_polynomial>
__device__ __forceinline__ void weigh(Block& s, Softmax& softmax, ptx::F32x2 scale_log2) {
  const ptx::F32x2 minus_m = ptx::pair(softmax.minus_m, softmax.minus_m);
#pragma unroll
  for (int i = 0; i < kBlockKeys; i += 2) {
    ptx::unpair(s[i], s[i + 1], ptx::multiply_add(ptx::pair(s[i], s[i + 1]), scale_log2, minus_m));
    if (by_polynomial && i / 2 % kPairsByPolynomial == kPairsByPolynomial - 1) {
      shared::exp2_by_polynomial(s[i], s[i + 1]);
    } else {
      s[i] = ptx::exp2(s[i]);
      s[i + 1] = ptx::exp2(s[i + 1]);
    }
    softmax.sums = ptx::add(softmax.sums, ptx::pair(s[i], s[i + 1]));
  }
}

__device__ __forceinline__ void negate(Scores& s) {
#pragma unroll
  for (Block& block : s) {
#pragma unroll
    for (float& x : block) x = -x;
  }
}

// Minus infinity where the query does not see the key: selected, whatever stands there.
__device__ __forceinline__ void hide(Block& s, std::uint32_t visible) {
#pragma unroll
  for (int i = 0; i < kBlockKeys; ++i) s[i] = visible >> i & 1 ? s[i] : -INFINITY;
}

// Bit c: the query sees key `key + c`; it sees those of `seen`.
template <Mask mask>
__device__ __forceinline__ std::uint32_t keys_visible(const shared::KeyRange& seen, int key) {
  const std::uint32_t up_to = shared::rows_up_to(seen.end - 1, key);
  return mask == Mask::kWindow ? up_to & shared::rows_that_see(seen.begin, key) : up_to;
}

template <Dtype dtype>
__device__ __forceinline__ void narrow(std::uint32_t (&words)[kBlockKeys / 2], const Block& v) {
#pragma unroll
  for (int i = 0; i < kBlockKeys / 2; ++i) words[i] = shared::narrow<dtype>(v[2 * i], v[2 * i + 1]);
}

}  // namespace flashback::sm100::forward
