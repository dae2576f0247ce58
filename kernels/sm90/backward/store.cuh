// dV and dK on their way out of the registers that they were summed in: straight to tensors in fp32, or as
// sums of a part through shared memory to those of the group.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/shared/turns.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm90/backward/work.cuh"

namespace flashback::sm90::backward {

// 64 x 64 of a warpgroup's accumulator in the order of its registers, dq_position, into shared memory.
__device__ __forceinline__ void store_tile(std::uint32_t to, const float (&x)[32], int thread) {
  to += thread * 16;
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    ptx::store_shared(to + i / 4 * kGroupThreads * 16, x[i], x[i + 1], x[i + 2], x[i + 3]);
}

// In fp32, straight to its tensor: of the accumulator's rows the thread has `key` and `key` + 8 of the item's
// keys, of each block of eight channels two.
template <int n>
__device__ void store_wide(const Parameters& p, const common::View& view, const float (&gradient)[n],
                           float scale, int key, const Work& work) {
  const int d = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = work.key_row + key + 8 * half;
    if (row >= work.sight.k.count) continue;
    float* const to = static_cast<float*>(view.data) + work.batch * view.batch_stride +
                      (work.sight.k.first + row) * view.row_stride + work.kv_head * view.head_stride + d;
#pragma unroll
    for (int block = 0; block < n / 4; ++block) {
      if (8 * block >= p.head_dim) continue;
      float2* const at = reinterpret_cast<float2*>(to + 8 * block);
      const float* const x = &gradient[4 * block + 2 * half];
      const float2 before = p.accumulate ? *at : float2{0, 0};
      *at = {before.x + scale * x[0], before.y + scale * x[1]};
    }
  }
}

// The store role, one thread: dV and dK of a part, two stages of the dS ring each, added to those of the
// group. Where there are turns each of the two has its own, so that one part's dV follows another's dV while
// that one's dK is still to come.
template <Config config>
__device__ void add_sums(const Parameters& p, SharedMemory<config.ctas>& sm) {
  constexpr int kStages = stages_of(config.ctas).ds;
  static_assert(kStages >= 2 && kSumStages == 2 * 2);
  shared::WorkReader<SharedMemory<config.ctas>> reader(sm);
  tile::RingPosition<kStages> leaving_at;
  int ds_slot = 0;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    if (threadIdx.x % 32 != 0 || !p.dk_accum) continue;
    ds_slot = (ds_slot + work.all_tiles()) % kStages;
    const std::int64_t number = key_number(p, work);
#pragma unroll 1
    for (int gradient = 0; gradient < 2; ++gradient) {
      float* const accum = (gradient == 0 ? p.dv_accum : p.dk_accum) + number * kSumFloats;
      std::int32_t* const additions = p.dk_turns ? p.dk_turns + 2 * number + gradient : nullptr;
#pragma unroll 1
      for (int half = 0; half < 2; ++half, leaving_at.advance()) {
        wait(sm.of_part.leaving[leaving_at.slot], leaving_at.full());
        FLASHBACK_MARK("add dV, dK");
        if (additions && half == 0) shared::wait_turn(additions, work.part);
        const int slot = (ds_slot + half) % kStages;
        ptx::add_bulk(accum + half * kDqFloats, sm.ds[slot].sums, sizeof(sm.ds[slot].sums));
        ptx::commit_bulk_group();
      }
      ptx::wait_bulk_read<0>();
      for (int half = 0; half < 2; ++half, ds_slot = (ds_slot + 1) % kStages) arrive(sm.ds_empty[ds_slot]);
      if (additions) shared::pass_turn(additions);
    }
  }
  if (threadIdx.x % 32 == 0) ptx::wait_bulk();
}

}  // namespace flashback::sm90::backward
