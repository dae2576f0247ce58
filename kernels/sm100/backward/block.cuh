// The arithmetic on what a compute thread has in hand: for one key, a block of query rows.
#pragma once

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/sm100/backward/config.h"
#include "kernels/tile/columns.h"

namespace flashback::sm100::backward {

// Where a compute thread works. Its 64 query rows of a tile are two blocks of 32, one in each half.
struct ComputeThread {
  int group;            // 0, 1: which block of a half
  int key;              // in the tile: its lane of tensor memory
  std::uint32_t lanes;  // its warp's part of a tensor memory address

  __device__ explicit ComputeThread(int warp)
      : group((warp - kFirstComputeWarp) / 4),
        key(static_cast<int>(threadIdx.x) % kGroupThreads),
        lanes(tile::lanes_of(warp)) {}
  // First row in the tile of the block in `half`.
  __device__ int row(int half) const { return half * kQueryRows / 2 + group * kBlockColumns; }
};

// P = exp2(S * scale_log2 - lse_log2) for a block of query rows. The exponent of a pair that is seen is never
// positive but for rounding, which for scores of 1e8 is an error of several units: taken as minus its
// absolute value, P is at most 1 whatever the scores, and that of a hidden pair is finite. The special
// function unit negates and drops signs for nothing, and so lse_log2 is read as it lies.
__device__ inline void exponentiate(float (&s)[kBlockColumns], ptx::F32x2 minus_scale_log2,
                                    const float* lse_log2) {
  const std::uint32_t from = ptx::shared_address(lse_log2);
#pragma unroll
  for (int i = 0; i < kBlockColumns; i += 4) {
    ptx::F32x2 lse[2];
    ptx::load_shared(lse[0], lse[1], from + i * sizeof(float));
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      float x, y;
      ptx::unpair(x, y, ptx::multiply_add(ptx::pair(s[i + j], s[i + j + 1]), minus_scale_log2, lse[j / 2]));
      s[i + j] = ptx::exp2(-fabsf(x));
      s[i + j + 1] = ptx::exp2(-fabsf(y));
    }
  }
}

// dS = P * (dP - delta) for a block of query rows, in place of dP.
__device__ inline void differentiate(float (&dp)[kBlockColumns], const float (&p)[kBlockColumns],
                                     const float* delta) {
  const std::uint32_t from = ptx::shared_address(delta);
#pragma unroll
  for (int i = 0; i < kBlockColumns; i += 4) {
    ptx::F32x2 rows[2];
    ptx::load_shared(rows[0], rows[1], from + i * sizeof(float));
#pragma unroll
    for (int j = i; j < i + 4; j += 2) {
      const ptx::F32x2 difference = ptx::subtract(ptx::pair(dp[j], dp[j + 1]), rows[(j - i) / 2]);
      ptx::unpair(dp[j], dp[j + 1], ptx::multiply(ptx::pair(p[j], p[j + 1]), difference));
    }
  }
}

// Zero where the query row does not see the key: selected, whatever stands there.
__device__ inline void hide(float (&v)[kBlockColumns], std::uint32_t visible) {
#pragma unroll
  for (int i = 0; i < kBlockColumns; ++i) v[i] = visible >> i & 1 ? v[i] : 0.0f;
}

template <Dtype dtype>
__device__ void narrow(std::uint32_t (&words)[kBlockWords], const float (&v)[kBlockColumns]) {
#pragma unroll
  for (int i = 0; i < kBlockWords; ++i) words[i] = shared::narrow<dtype>(v[2 * i], v[2 * i + 1]);
}

// A block in shared memory, sixteen bytes at a time; `offset` says where in the buffer each chunk goes.
template <class Offset>
__device__ void store_block(const std::uint32_t (&words)[kBlockWords], Offset offset, std::uint32_t to) {
#pragma unroll
  for (int i = 0; i < kBlockChunks; ++i) {
    const std::uint32_t* w = &words[4 * i];
    ptx::store_shared(to + offset(i), w[0], w[1], w[2], w[3]);
  }
}

}  // namespace flashback::sm100::backward
