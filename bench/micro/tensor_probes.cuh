// Probes of tensor memory and tensor core: what no other architecture has.
#pragma once

#include "bench/micro/probes.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/tile/columns.h"
#include "kernels/tile/product.cuh"

namespace flashback::micro {

// Allocates all of tensor memory for the CTA while it lives.
struct TensorMemory {
  std::uint32_t address;

  __device__ TensorMemory() {
    __shared__ std::uint32_t allocated;
    if (threadIdx.x < 32) {
      ptx::allocate_tensor_memory<tile::kTensorMemoryColumns>(allocated);
      ptx::relinquish_tensor_memory();
      ptx::fence_before_sync();
    }
    __syncthreads();
    ptx::fence_after_sync();
    address = allocated;
  }
  __device__ void release() const {
    ptx::fence_before_sync();
    __syncthreads();
    ptx::fence_after_sync();
    if (threadIdx.x < 32) ptx::free_tensor_memory<tile::kTensorMemoryColumns>(address);
  }
};

// Loads of 32 columns by each warp of a warpgroup: `together` before each wait, one is the latency.
template <int together>
__device__ inline void tensor_loads(const Parameters& p) {
  const TensorMemory memory;
  const std::uint32_t from = memory.address + tile::lanes_of(static_cast<int>(threadIdx.x) / 32);
  const std::uint32_t zeros[16] = {};
#pragma unroll
  for (int column = 0; column < 64 * together; column += 16) ptx::store_columns(from + column, zeros);
  ptx::wait_stores();
  std::uint32_t all = 0;
#pragma unroll 1
  for (int i = 0; i < p.n; ++i) {
    float v[32], w[32];
    if constexpr (together == 1) {
      ptx::load_columns(v, from + (all & 1));
      all |= __float_as_uint(v[0]);
    } else {
#pragma unroll
      for (int j = 0; j < together; j += 2) {
        ptx::load_columns(v, from + 64 * j, w, from + 64 * j + 32);
        all |= __float_as_uint(v[0]) | __float_as_uint(w[0]);
      }
    }
  }
  report(p, all + 1);
  memory.release();
}

// Batches of sixteen products M128 x N x 16, each committed and waited for once, while the other warps read
// shared memory if there are any: whether they slow the products down is the question of the ports.
template <int n, bool a_in_shared>
__device__ inline void products(const Parameters& p) {
  __shared__ ptx::Barrier done;
  __shared__ volatile int finished;
  auto& a = *reinterpret_cast<tile::OperandTile<128>*>(&buffers[0]);
  auto& b = *reinterpret_cast<tile::OperandTile<n>*>(&buffers[1]);
  for (int i = static_cast<int>(threadIdx.x); i < 8192; i += static_cast<int>(blockDim.x)) {
    reinterpret_cast<std::uint32_t*>(buffers)[i] = 0;
  }
  if (threadIdx.x == 0) {
    finished = 0;
    ptx::initialise(done, 1);
    ptx::fence_initialised_barriers();
  }
  ptx::fence_async_shared();
  const TensorMemory memory;
  float sum = 0;
  if (threadIdx.x < 32) {
    if (ptx::elect()) {
      const tile::TensorOperand<64> in_tensor_memory{memory.address + 256};
#pragma unroll 1
      for (int i = 0; i < p.n; ++i) {
#pragma unroll
        for (int batch = 0; batch < 4; ++batch) {
          if constexpr (a_in_shared) {
            tile::multiply<shared::Dtype::kBf16>(memory.address, tile::along_rows(a), tile::along_rows(b),
                                                 false);
          } else {
            tile::multiply<shared::Dtype::kBf16>(memory.address, in_tensor_memory, tile::along_rows(b),
                                                 false);
          }
        }
        commit(done);
        wait(done, i & 1);
      }
      finished = 1;
    }
    __syncwarp();
  } else {
    const std::uint32_t from = ptx::shared_address(buffers) + threadIdx.x % 32 * 16;
    while (finished == 0) {
      float4 v[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) ptx::load_shared(v[j], from + static_cast<std::uint32_t>(j) * 512);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum += v[j].x;
    }
  }
  report(p, static_cast<std::uint32_t>(sum) + 1);
  memory.release();
}

}  // namespace flashback::micro
