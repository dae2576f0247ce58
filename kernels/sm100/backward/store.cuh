// dK and dV on their way out of the main kernel: to their tensors in 16 bit, or to sums in fp32.
#pragma once

#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/sm100/backward/block.cuh"
#include "kernels/sm100/backward/work.cuh"

namespace flashback::sm100::backward {

// A finished dK or dV on its way out through shared memory that no product reads any more. Each compute group
// has half of the columns, 32 at a time; block b of a group is block `group * blocks + b` of the gradient.
struct Gradient {
  ptx::Barrier& full;
  std::uint32_t columns;  // of tensor memory
  float scale;
  const TensorMapBytes* map;
  float* accum;           // null: stored by map
  std::uint32_t staging;  // shared address of its slabs: the first half in 16 bit, all of them in fp32
  int turns;              // the first of its two counters among the tile's
};

// Scaled, narrowed, stored by tensor map (which leaves out rows past the last key).
template <Dtype dtype>
__device__ void store_narrow(const Parameters& p, const Gradient& gradient, float (&v)[kBlockColumns],
                             int block, const Work& work, const ComputeThread& thread, bool issuer) {
#pragma unroll
  for (float& x : v) x *= gradient.scale;
  std::uint32_t words[kBlockWords];
  narrow<dtype>(words, v);
  const std::uint32_t staged = gradient.staging + block * kStagedBytes;
  store_block(
      words, [&](int i) { return staged_chunk(thread.key, i); }, staged);
  ptx::fence_async_shared();
  ptx::sync<kGroupThreads>(kGroupBarrier + thread.group);
  if (issuer) {
    ptx::store_tensor(gradient.map, at_keys(p, work, block * kBlockColumns), staged);
    ptx::commit_bulk_group();
  }
}

// Added in fp32 to what other query heads add: whole tiles, whose rows past the last key are zero.
template <int head_dim>
__device__ void add_wide(const Parameters& p, const Gradient& gradient, const float (&v)[kBlockColumns],
                         int block, const Work& work, const ComputeThread& thread, bool issuer) {
  const std::uint32_t staged = gradient.staging + block * kDqBlockBytes;
#pragma unroll
  for (int d = 0; d < kBlockColumns; d += 4) {
    ptx::store_shared(staged + shared::dq_offset(thread.key, d) * sizeof(float), v[d], v[d + 1], v[d + 2],
                      v[d + 3]);
  }
  ptx::fence_async_shared();
  ptx::sync<kGroupThreads>(kGroupBarrier + thread.group);
  if (issuer) {
    ptx::add_bulk(gradient.accum + key_tile_number(p, work) * kKeyRows * head_dim +
                      shared::dq_offset(0, block * kBlockColumns),
                  staged, kDqBlockBytes);
    ptx::commit_bulk_group();
  }
}

template <Config config>
__device__ void store_gradient(const Parameters& p, const Gradient& gradient, const Work& work,
                               const ComputeThread& thread, bool issuer) {
  constexpr int kBlocks = config.head_dim / 2 / kBlockColumns;  // of a group
  std::int32_t* const turns = issuer && p.dk_turns
                                  ? p.dk_turns + key_tile_number(p, work) * 4 + gradient.turns + thread.group
                                  : nullptr;
  FLASHBACK_MARK("store gradient");
  wait(gradient.full, 0);
  ptx::fence_after_sync();
  if (turns) shared::wait_turn(turns, work.head % p.group);
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    const int block = thread.group * kBlocks + b;
    float v[kBlockColumns];
    ptx::load_columns(v, gradient.columns + thread.lanes + block * kBlockColumns);
    if (gradient.accum) {
      add_wide<config.head_dim>(p, gradient, v, block, work, thread, issuer);
    } else {
      store_narrow<config.dtype>(p, gradient, v, block, work, thread, issuer);
    }
    __syncwarp();
  }
  if (turns) shared::pass_turn(turns);
  __syncwarp();
}

}  // namespace flashback::sm100::backward
