// dQ from a ring in shared memory into its accumulator: one thread for each stage of the ring, so that as
// many additions are in flight.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm90/backward/work.cuh"

namespace flashback::sm90::backward {

// The thread adds every `step`-th tile from `first` on. `SharedMemory` has the ring `dq` with its barriers.
template <Config config, int step, class SharedMemory>
__device__ void reduce(const Parameters& p, SharedMemory& sm, int dq_stage, int first) {
  constexpr int kFloats = sizeof(sm.dq[0]) / sizeof(sm.dq[0][0]);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  shared::WorkReader<SharedMemory> reader(sm);
  std::uint32_t dq_parity = 0;
  int next = first;  // of the work's tiles, head after head
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    if (lane == 0) {
      const int tiles = work.tiles();
      for (int i = 0; i < work.heads; ++i, next -= tiles) {
        const std::int64_t sequence = query_number(p, work, work.head + i);
#pragma unroll 1
        for (; next < tiles; next += step) {
          const int along = work.first + next, t = along < work.end ? along : along - tiles;
          float* const to = p.dq_accum + (sequence + t) * kFloats;
          wait(sm.dq_full[dq_stage], dq_parity);
          FLASHBACK_MARK("add dQ");
          // Pairs are not deterministic.
          std::int32_t* const additions =
              config.ctas == 1 && p.dq_turns ? p.dq_turns + sequence + t : nullptr;
          if (additions) shared::wait_turn(additions, turn_of<config.mask>(p, work, t));
          ptx::add_bulk(to, sm.dq[dq_stage], sizeof(sm.dq[dq_stage]));
          ptx::commit_bulk_group();
          ptx::wait_bulk_read<0>();
          arrive(sm.dq_empty[dq_stage]);
          dq_parity ^= 1;
          if (additions) shared::pass_turn(additions);
        }
      }
    }
    __syncwarp();
  }
  if (lane == 0) ptx::wait_bulk();
}

}  // namespace flashback::sm90::backward
