// The arithmetic on what a compute thread has in hand: for one key, a block of query rows.
#pragma once

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/sm100/backward/config.h"

namespace flashback::sm100::backward {

// P = exp2(S * scale_log2 - lse_log2) for a block of query rows, from minus the exponent: the special
// function unit negates for nothing, and lse_log2 is read as it lies.
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
      s[i + j] = ptx::exp2(-x);
      s[i + j + 1] = ptx::exp2(-y);
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
__device__ void store_block(const std::uint32_t (&words)[kBlockWords], Offset offset, void* buffer) {
  const std::uint32_t to = ptx::shared_address(buffer);
#pragma unroll
  for (int i = 0; i < kBlockChunks; ++i) {
    const std::uint32_t* w = &words[4 * i];
    ptx::store_shared(to + offset(i), w[0], w[1], w[2], w[3]);
  }
}

}  // namespace flashback::sm100::backward
