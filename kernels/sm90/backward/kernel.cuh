// Attention gradients on sm_90a, head dim 64: the roles in the order of the data, then the kernel. Compute,
// reduce and store have files of their own, and so has what pairs do besides.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/shared/entry.cuh"
#include "kernels/sm90/backward/compute.cuh"
#include "kernels/sm90/backward/pair.cuh"
#include "kernels/sm90/backward/reduce.cuh"
#include "kernels/sm90/backward/store.cuh"
#include "kernels/sm90/backward/work.cuh"

namespace flashback::sm90::backward {

// --- load: one thread

template <Config config>
__device__ void load(const Parameters& p, SharedMemory<config.ctas>& sm, int rank) {
  constexpr Stages kStages = stages_of(config.ctas);
  ptx::prefetch_tensor_map(&p.q);
  ptx::prefetch_tensor_map(&p.dout);
  ptx::prefetch_tensor_map(&p.k);
  ptx::prefetch_tensor_map(&p.v);
  RingPosition<kWorkStages> work_at;
  RingPosition<kStages.k> k_at;
  RingPosition<1> v_at;
  RingPosition<kStages.tiles> tile_at;
  Tickets<config> tickets{p, sm, rank};
  for (int ticket = tickets.first();;) {
    wait(sm.work_empty[work_at.slot], work_at.empty());
    Work& work = sm.work[work_at.slot];
    find_work<config>(p, ticket, rank, work);
    arrive(sm.work_full[work_at.slot]);
    work_at.advance();
    if (work.batch < 0) return;

    ptx::Coordinates5 at =
        shared::at_row(p.sequences.k, work.sight.k, work.key_row, work.kv_head, work.batch);
    wait(sm.k_empty[k_at.slot], k_at.empty());
    arrive_and_expect(sm.k_full[k_at.slot], config.ctas * sizeof(sm.k[0]));
    load_tensor(&sm.k[k_at.slot], &p.k, at, sm.k_full[k_at.slot]);
    if constexpr (config.ctas == 2) {
      ptx::Coordinates5 of_peer = at;
      of_peer.row += rank == 0 ? kKeyRows : -kKeyRows;
      load_tensor(&sm.peer.k, &p.k, of_peer, sm.k_full[k_at.slot]);
    }
    k_at.advance();
    wait(sm.v_empty, v_at.empty());
    arrive_and_expect(sm.v_full, sizeof(sm.v));
    load_tensor(&sm.v, &p.v, at, sm.v_full);
    v_at.advance();

    for (int i = 0; i < 2 * work.heads; ++i) {
      // Of each head from the work's first query tile to the last, then those before it.
      const int head = work.head + i / 2;
      const int from = i % 2 == 0 ? work.first : work.begin, to = i % 2 == 0 ? work.end : work.first;
      at = shared::at_row(p.sequences.q, work.sight.q, from * kQueryRows, head, work.batch);
      const float* stats = p.stats + (query_number(p, work, head) + from) * kStatsFloats;
#pragma unroll 1
      for (int tiles = to - from; tiles > 0; --tiles) {
        const int slot = tile_at.slot;
        wait(sm.tile_empty[slot], tile_at.empty());
        FLASHBACK_MARK("Q, dO");
        arrive_and_expect(sm.tile_full[slot], kTileBytes);
        load_tensor(&sm.q[slot], &p.q, at, sm.tile_full[slot]);
        load_bulk(sm.stats[slot], stats, sizeof(sm.stats[slot]), sm.tile_full[slot]);
        load_tensor(&sm.dout[slot], &p.dout, at, sm.tile_full[slot]);
        tile_at.advance();
        at.row += kQueryRows;
        stats += kStatsFloats;
      }
    }
    // Only now, so that tickets begin in their order; the tiles in flight cover the way to the counter.
    ticket = tickets.next(ticket);
  }
}

// --- multiply: a warpgroup

// dQ of dS of 128 keys and their K, on top of what is there unless `fresh`. Drained.
template <Dtype dtype, bool fresh>
__device__ __forceinline__ void multiply_keys(float (&dq)[32], const DsTile& ds,
                                              const tile::OperandTile<kKeyRows>& keys) {
  const std::uint64_t a = ptx::wgmma_operand(&ds), k = ptx::wgmma_operand(&keys);
  constexpr int kHalf = sizeof(ds.half[0]) / 16;
  ptx::wgmma_fence();
  if constexpr (fresh) ptx::wgmma_fresh<dtype, true>(dq, a, k);
#pragma unroll
  for (int step = fresh; step < 8; ++step)
    ptx::wgmma<dtype, true>(dq, a + step / 4 * kHalf + step % 4 * 2, k + 128 * step);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::pin(dq);
}

template <Config config>
__device__ void multiply(const Parameters& p, SharedMemory<config.ctas>& sm, int rank) {
  constexpr Stages kStages = stages_of(config.ctas);
  const int thread = static_cast<int>(threadIdx.x) % kGroupThreads, lane = thread % 32;
  WorkReader<config.ctas> reader(sm);
  RingPosition<kStages.k> k_at;
  RingPosition<kStages.ds> ds_at;
  RingPosition<kStages.dq> dq_at;
  RingPosition<kPeerStages> peer_at;
  RingPosition<kStages.ds> leaving_at;
  int turn = 0;  // of a pair: whose tile it is
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    wait(sm.k_full[k_at.slot], k_at.full());
#pragma unroll 1
    for (int tiles = work.all_tiles(); tiles > 0; --tiles, ds_at.advance()) {
      if constexpr (config.ctas == 2) {
        turn ^= 1;
        if (turn == rank) continue;  // the first tile is rank 0's
      }
      wait(sm.ds_full[ds_at.slot], ds_at.full());
      float dq[32];
      FLASHBACK_MARK("dQ");
      multiply_keys<config.dtype, true>(dq, sm.ds[ds_at.slot].of_queries, sm.k[k_at.slot]);
      __syncwarp();
      if (lane == 0) arrive(sm.ds_empty[ds_at.slot]);
      if constexpr (config.ctas == 2) {
        ptx::wait_for_cluster(sm.of_peer.ds_full[peer_at.slot], peer_at.full());
        multiply_keys<config.dtype, false>(dq, sm.peer.ds[peer_at.slot], sm.peer.k);
        __syncwarp();
        if (lane == 0) ptx::arrive_at(rank ^ 1, sm.of_peer.ds_empty[peer_at.slot]);
        peer_at.advance();
      }

      wait(sm.dq_empty[dq_at.slot], dq_at.empty());
      FLASHBACK_MARK("store dQ");
      store_tile(ptx::shared_address(sm.dq[dq_at.slot]), dq, thread);
      ptx::fence_async_shared();
      __syncwarp();
      if (lane == 0) arrive(sm.dq_full[dq_at.slot]);
      dq_at.advance();
    }
    __syncwarp();
    if (lane == 0) arrive(sm.k_empty[k_at.slot]);
    k_at.advance();
    if constexpr (config.ctas == 1) {
      if (p.dk_accum) {
        // Store reads the sums, and arrives for the first warp once it has. All four have seen every phase.
#pragma unroll 1
        for (int stage = 0; stage < kSumStages; ++stage, ds_at.advance(), leaving_at.advance()) {
          wait(sm.ds_full[ds_at.slot], ds_at.full());
          __syncwarp();
          if (lane == 0) arrive(thread == 0 ? sm.of_part.leaving[leaving_at.slot] : sm.ds_empty[ds_at.slot]);
        }
        continue;
      }
    }
    if (p.wide_dv.data) continue;
    const auto store = [&](const TensorMapBytes& map) {
      wait(sm.ds_full[ds_at.slot], ds_at.full());
      if (thread == 0) {
        ptx::store_tensor(&map,
                          shared::at_row(p.sequences.k, work.sight.k, work.key_row, work.kv_head, work.batch),
                          ptx::shared_address(&sm.ds[ds_at.slot]));
        ptx::commit_bulk_group();
        ptx::wait_bulk_read<0>();
      }
      __syncwarp();
      if (lane == 0) arrive(sm.ds_empty[ds_at.slot]);
      ds_at.advance();
    };
    store(p.dv);
    store(p.dk);
  }
  if (thread == 0) ptx::wait_bulk();
}

// --- the kernel

template <int ctas>
__device__ void initialise_barriers(SharedMemory<ctas>& sm) {
  const auto all = [](auto& barriers, std::uint32_t arrivals) {
    for (auto& barrier : barriers) initialise(barrier, arrivals);
  };
  all(sm.work_full, 1);
  all(sm.work_empty, kWorkReaders);
  all(sm.k_full, 1);
  all(sm.k_empty, kComputeWarps + kMultiplyWarps);
  initialise(sm.v_full, 1);
  initialise(sm.v_empty, kComputeWarps);
  all(sm.tile_full, 1);
  all(sm.tile_empty, kComputeWarps);
  all(sm.ds_full, kComputeWarps);
  all(sm.ds_empty, kMultiplyWarps);
  all(sm.dq_full, kMultiplyWarps);
  all(sm.dq_empty, 1);
  if constexpr (ctas == 1) {
    all(sm.of_part.leaving, 1);
  } else {
    all(sm.of_peer.ds_full, 1);
    all(sm.of_peer.ds_empty, kMultiplyWarps);
    all(sm.of_peer.ticket_full, 1);
    all(sm.of_peer.ticket_empty, 1);
  }
  ptx::fence_initialised_barriers();
}

template <Config config>
__device__ void backward(const Parameters& p) {
  static_assert(config.head_dim == kHeadDim);
  auto& sm = shared::dynamic_shared_memory<SharedMemory<config.ctas>>();
  const int warp = shared::this_warp();
  const int rank = config.ctas == 1 ? 0 : ptx::cluster_rank();
  if (threadIdx.x == 0) initialise_barriers(sm);
  __syncthreads();
  if constexpr (config.ctas == 2) ptx::sync_cluster();  // the peer's barriers too

  const Role role = role_of(config.ctas, warp);
  if (role == Role::kCompute) {
    ptx::raise_registers<kComputeRegisters>();
    compute<config>(p, ptx::in_register(sm));
  } else if (role == Role::kMultiply) {
    ptx::lower_registers<kMultiplyRegisters>();
    multiply<config>(p, sm, rank);
  } else {
    ptx::lower_registers<kServiceRegisters>();
    if (role == Role::kLoad) {
      if (threadIdx.x == 0) load<config>(p, sm, rank);
    } else if (role == Role::kReduce) {
      const int stage = warp - kFirstReduceWarp;
      // Of two threads each has its stage, of a pair each CTA its turn.
      reduce<config, 2>(p, sm, stage, config.ctas == 1 ? stage : rank);
    } else if constexpr (config.ctas == 1) {
      add_sums<config>(p, sm);
    } else {
      if (role == Role::kSend) send<config>(p, sm, rank);
      if (role == Role::kAcknowledge) acknowledge<config>(p, sm, rank);
    }
  }
  if constexpr (config.ctas == 2) {
    // The peer may still send here or arrive at a barrier here.
    __syncwarp();
    ptx::sync_cluster();
  }
}

}  // namespace flashback::sm90::backward
