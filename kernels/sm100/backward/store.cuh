// dK and dV on their way out of the main kernel: to their tensors in 16 bit, or to sums in fp32.
#pragma once

#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/sm100/backward/block.cuh"
#include "kernels/sm100/backward/work.cuh"

namespace flashback::sm100::backward {

// A finished dK or dV: 32 columns a compute group, on their way out through shared memory that no product
// reads any more.
struct Gradient {
  ptx::Barrier& full;
  std::uint32_t columns;  // of tensor memory
  float scale;
  const TensorMapBytes* map;
  float* accum;           // null: stored by map
  std::uint32_t staging;  // shared address of this compute group's
  int turns;              // which of the tile's counters is its own
};

// Scaled, narrowed, stored by tensor map (which leaves out rows past the last key).
template <Dtype dtype>
__device__ void store_narrow(const Parameters& p, const Gradient& gradient, float (&v)[kBlockColumns],
                             const Work& work, const ComputeThread& thread, bool issuer) {
#pragma unroll
  for (float& x : v) x *= gradient.scale;
  std::uint32_t words[kBlockWords];
  narrow<dtype>(words, v);
  store_block(
      words, [&](int i) { return staged_chunk(thread.key, i); }, gradient.staging);
  ptx::fence_async_shared();
  ptx::sync<kGroupThreads>(kGroupBarrier + thread.group);
  if (issuer) {
    ptx::store_tensor(gradient.map, at_keys(p, work, thread.group * kBlockColumns), gradient.staging);
    ptx::commit_bulk_group();
  }
}

// Added in fp32 to what other query heads add: whole tiles, whose rows past the last key are zero.
__device__ inline void add_wide(const Parameters& p, const Gradient& gradient,
                                const float (&v)[kBlockColumns], const Work& work,
                                const ComputeThread& thread, bool issuer) {
#pragma unroll
  for (int d = 0; d < kBlockColumns; d += 4) {
    ptx::store_shared(gradient.staging + shared::dq_offset(thread.key, d) * sizeof(float), v[d], v[d + 1],
                      v[d + 2], v[d + 3]);
  }
  ptx::fence_async_shared();
  ptx::sync<kGroupThreads>(kGroupBarrier + thread.group);
  if (issuer) {
    const std::int64_t tile = key_tile_number(p, work);
    std::int32_t* const turns = p.dk_turns ? p.dk_turns + tile * 4 + gradient.turns : nullptr;
    if (turns) wait_turn(turns, work.head % p.group);
    ptx::add_bulk(
        gradient.accum + tile * kKeyRows * kHeadDim + shared::dq_offset(0, thread.group * kBlockColumns),
        gradient.staging, kDqBlockBytes);
    ptx::commit_bulk_group();
    if (turns) pass_turn(turns);
  }
}

template <Dtype dtype>
__device__ void store_gradient(const Parameters& p, const Gradient& gradient, const Work& work,
                               const ComputeThread& thread, bool issuer) {
  wait(gradient.full, 0);
  ptx::fence_after_sync();
  float v[kBlockColumns];
  ptx::load_columns(v, gradient.columns + thread.lanes + thread.group * kBlockColumns);
  if (gradient.accum) {
    add_wide(p, gradient, v, work, thread, issuer);
  } else {
    store_narrow<dtype>(p, gradient, v, work, thread, issuer);
  }
  __syncwarp();
}

}  // namespace flashback::sm100::backward
