// Attention gradients on sm_90a, head dim 64: the roles in the order of the data, then the kernel.
#pragma once

#include <type_traits>

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/matrix.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/shared/entry.cuh"
#include "kernels/shared/group_turns.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm90/backward/reduce.cuh"
#include "kernels/sm90/backward/store.cuh"
#include "kernels/sm90/backward/work.cuh"
#include "kernels/tile/ring.h"

namespace flashback::sm90::backward {

using tile::RingPosition;

template <int ctas>
using WorkReader = shared::WorkReader<SharedMemory<ctas>>;

// Waits where the peer of a pair arrives as well.
template <int ctas>
__device__ __forceinline__ void wait_for_peer(ptx::Barrier& barrier, std::uint32_t parity) {
  if constexpr (ctas == 1) {
    wait(barrier, parity);
  } else {
    ptx::wait_for_cluster(barrier, parity);
  }
}

// --- load: one thread

// Where the tickets of a CTA come from. Of a pair the leader, rank 0, takes each for both.
template <Config config>
struct Tickets {
  const Parameters& p;
  SharedMemory<config.ctas>& sm;
  int rank;
  RingPosition<kTicketStages> at = {};

  __device__ int first() const { return static_cast<int>(blockIdx.x) / config.ctas; }
  __device__ int next(int ticket) {
    if constexpr (config.ctas == 1) {
      return next_ticket(p, ticket);
    } else {
      const int all = static_cast<int>(gridDim.x) / config.ctas;
      if (rank == 0) {
        ticket = all + ptx::take_number(p.next_ticket);
        ptx::wait_for_cluster(sm.of_peer.ticket_empty[at.slot], at.empty());
        ptx::store_at(1, sm.of_peer.ticket[at.slot], ticket);
        ptx::arrive_at(1, sm.of_peer.ticket_full[at.slot]);
      } else {
        ptx::wait_for_cluster(sm.of_peer.ticket_full[at.slot], at.full());
        ticket = sm.of_peer.ticket[at.slot];
        ptx::arrive_at(0, sm.of_peer.ticket_empty[at.slot]);
      }
      at.advance();
      return ticket;
    }
  }
};

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

// 64 x 64 of a warpgroup's accumulator in the order of its registers, dq_position, into shared memory.
__device__ __forceinline__ void store_tile(std::uint32_t to, const float (&x)[32], int thread) {
  to += thread * 16;
#pragma unroll
  for (int i = 0; i < 32; i += 4)
    ptx::store_shared(to + i / 4 * kGroupThreads * 16, x[i], x[i + 1], x[i + 2], x[i + 3]);
}

// --- compute: two warpgroups, 64 keys each

// Where a compute thread works: rows `key` and `key` + 8 of the item's keys, of each block of eight query
// rows two, from 2 * (lane % 4) on.
struct ComputeThread {
  int group, warp, lane;

  __device__ ComputeThread()
      : group(static_cast<int>(threadIdx.x) / kGroupThreads - 1),
        warp(static_cast<int>(threadIdx.x) / 32 % 4),
        lane(static_cast<int>(threadIdx.x) % 32) {}
  __device__ int key() const { return group * kGroupKeys + warp * 16 + lane / 4; }
  // What the lane addresses of 16 keys x 16 channels, the tile's first ones of this warp, in a matrix load or
  // store along the rows. The swizzle makes of a step of 16 channels an exclusive or with 32.
  __device__ std::uint32_t matrix_chunk() const {
    return tile::OperandTile<kKeyRows>::chunk(group * kGroupKeys + warp * 16 + lane % 16, lane / 16);
  }
};

// A warp's keys of K or V as A operands: four steps of 16 channels.
using Fragments = std::uint32_t[4][4];

__device__ inline void load_fragments(Fragments& fragments, const tile::OperandTile<kKeyRows>& keys,
                                      const ComputeThread& thread) {
  const std::uint32_t from = ptx::shared_address(&keys) + thread.matrix_chunk();
#pragma unroll
  for (int step = 0; step < 4; ++step) ptx::load_matrix(fragments[step], from ^ (32 * step));
}

// Of an item: K and V, and its gradients so far.
struct Item {
  Fragments k, v;
  float dk[32], dv[32];
};

// The statistics of the thread's rows: 16 of lse_log2, or 16 of delta.
struct RowValues {
  float4 of_blocks[4];  // of two blocks of eight rows each

  __device__ void load(std::uint32_t from) {
#pragma unroll
    for (int i = 0; i < 4; ++i) ptx::load_shared(of_blocks[i], from + 64 * i);
  }
  // Of element e (0..3) of the accumulator's block of eight columns.
  __device__ float at(int block, int e) const {
    const float4& v = of_blocks[block / 2];
    return block % 2 == 0 ? (e % 2 == 0 ? v.x : v.y) : (e % 2 == 0 ? v.z : v.w);
  }
};

// Which of the tile's rows, counted from the thread's first one, see the thread's keys: those from from[i]
// on, and under kWindow only those before `to`, for the second key eight rows more.
struct Seen {
  int from[2];
  int to;

  // Of the tile from `row` on.
  template <Mask mask>
  __device__ static Seen of(const Parameters& p, const Work& work, const ComputeThread& thread, int row) {
    const shared::Lengths lengths = work.sight.lengths(p.sequences);
    const int key = work.key_row + thread.key(), from = row + thread.lane % 4 * 2;
    return {{shared::first_row_that_sees(mask, key, lengths) - from,
             shared::first_row_that_sees(mask, key + 8, lengths) - from},
            shared::last_row_that_sees(mask, key, lengths) + 1 - from};
  }

  // Whether element e of the accumulator's block of eight columns is hidden.
  template <Mask mask>
  __device__ bool hides(int block, int e) const {
    const int row = 8 * block + e % 2;
    return row < from[e / 2] || (mask == Mask::kWindow && row >= to + e / 2 * 8);
  }
};

// A group's products S and dP start when the other's S is done: 1780 cycles a tile, and 2060 where the groups
// are left alone.
using Turns = shared::GroupTurns<2, kFirstTurnBarrier>;

// One query tile.
template <Config config, bool masked>
__device__ __forceinline__ void compute_tile(const Parameters& p, SharedMemory<config.ctas>& sm, Item& item,
                                             int slot, RingPosition<stages_of(config.ctas).ds> ds_at,
                                             std::uint32_t ds_row, Turns turns, Seen seen) {
  constexpr Dtype kDtype = config.dtype;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint64_t q = ptx::wgmma_operand(&sm.q[slot]), dout = ptx::wgmma_operand(&sm.dout[slot]);
  float s[32], dp[32];
  turns.take();
  FLASHBACK_MARK("S, dP");
  // A fence before every batch, also where no register changed: without it the four warps enter the products
  // apart, and the tile takes 8 % longer.
  ptx::wgmma_fence();
  ptx::wgmma_fresh<kDtype, false>(s, item.k[0], q);
#pragma unroll
  for (int step = 1; step < 4; ++step) ptx::wgmma<kDtype, false>(s, item.k[step], q + 2 * step);
  ptx::wgmma_commit();
  ptx::wgmma_fence();
  ptx::wgmma_fresh<kDtype, false>(dp, item.v[0], dout);
#pragma unroll
  for (int step = 1; step < 4; ++step) ptx::wgmma<kDtype, false>(dp, item.v[step], dout + 2 * step);
  ptx::wgmma_commit();

  const std::uint32_t stats = ptx::shared_address(sm.stats[slot]) + lane % 4 * 16;
  RowValues rows;
  rows.load(stats);
  ptx::wgmma_wait<1>();
  ptx::pin(s);
  turns.pass();
  FLASHBACK_MARK("softmax");
  Fragments prob, ds;  // as A operands: a step is 16 query rows, two blocks of the accumulator
#pragma unroll
  for (int block = 0; block < 8; ++block) {
    float* const x = &s[4 * block];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      // lse - S is positive but for rounding, which for scores of 1e8 is an error of several units: taken as
      // its magnitude, P does not exceed 1.
      x[e] = ptx::exp2(-fabsf(fmaf(x[e], -p.scale_log2, rows.at(block, e))));
      if constexpr (masked) x[e] = seen.hides<config.mask>(block, e) ? 0.0f : x[e];
    }
    prob[block / 2][block % 2 * 2] = shared::narrow<kDtype>(x[0], x[1]);
    prob[block / 2][block % 2 * 2 + 1] = shared::narrow<kDtype>(x[2], x[3]);
  }

  rows.load(stats + kQueryRows * sizeof(float));
  ptx::wgmma_wait<0>();
  ptx::pin(dp);
  wait_for_peer<config.ctas>(sm.ds_empty[ds_at.slot], ds_at.empty());
  FLASHBACK_MARK("dS");
  ds_row += ptx::shared_address(&sm.ds[ds_at.slot]);
#pragma unroll
  for (int block = 0; block < 8; ++block) {
    float* const x = &dp[4 * block];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[e] = s[4 * block + e] * (x[e] - rows.at(block, e));
      // Not 0 * (dP - delta): delta of a row that sees no key is what its out happens to hold, maybe NaN.
      if constexpr (masked) x[e] = seen.hides<config.mask>(block, e) ? 0.0f : x[e];
    }
    ds[block / 2][block % 2 * 2] = shared::narrow<kDtype>(x[0], x[1]);
    ds[block / 2][block % 2 * 2 + 1] = shared::narrow<kDtype>(x[2], x[3]);
    if (block % 2 == 1)
      ptx::store_matrix_transposed(ds_row + block / 2 * 16 * tile::kRowBytes, ds[block / 2]);
  }
  FLASHBACK_MARK("dV");
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) ptx::wgmma<kDtype, true>(item.dv, prob[step], dout + 128 * step);
  ptx::wgmma_commit();
  ptx::fence_async_shared();
  __syncwarp();
  if (lane == 0) arrive(sm.ds_full[ds_at.slot]);
  FLASHBACK_MARK("dK");
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) ptx::wgmma<kDtype, true>(item.dk, ds[step], q + 128 * step);
  ptx::wgmma_commit();
  // Nothing stays in flight over the back edge of the loop: the compiler would serialise every product.
  ptx::wgmma_wait<0>();
  ptx::pin(item.dk);
  ptx::pin(item.dv);
  __syncwarp();
  if (lane == 0) arrive(sm.tile_empty[slot]);
}

// A finished dV or dK, 64 keys of it, into a stage of the dS ring.
template <Config config>
__device__ void stage_gradient(SharedMemory<config.ctas>& sm, const float (&gradient)[32], float scale,
                               const ComputeThread& thread, RingPosition<stages_of(config.ctas).ds> at) {
  wait_for_peer<config.ctas>(sm.ds_empty[at.slot], at.empty());
  const std::uint32_t to = ptx::shared_address(&sm.ds[at.slot].gradient) + thread.matrix_chunk();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const float* const x = &gradient[8 * step];
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = shared::narrow<config.dtype>(scale * x[2 * i], scale * x[2 * i + 1]);
    ptx::store_matrix(to ^ (32 * step), words);
  }
  ptx::fence_async_shared();
  __syncwarp();
  if (thread.lane == 0) arrive(sm.ds_full[at.slot]);
}

// A part's dV or dK, in two stages of the dS ring: each warpgroup fills one and lets the other pass.
template <Config config>
__device__ void stage_sums(SharedMemory<config.ctas>& sm, const float (&sums)[32],
                           const ComputeThread& thread, RingPosition<stages_of(config.ctas).ds>& at) {
#pragma unroll 1
  for (int group = 0; group < 2; ++group, at.advance()) {
    wait(sm.ds_empty[at.slot], at.empty());
    if (group == thread.group) {
      const int in_group = static_cast<int>(threadIdx.x) % kGroupThreads;
      store_tile(ptx::shared_address(&sm.ds[at.slot].sums), sums, in_group);
    }
    ptx::fence_async_shared();
    __syncwarp();
    if (thread.lane == 0) arrive(sm.ds_full[at.slot]);
  }
}

template <Config config>
__device__ void compute(const Parameters& p, SharedMemory<config.ctas>& sm) {
  constexpr Stages kStages = stages_of(config.ctas);
  const ComputeThread thread;
  // Of dS, 8 query rows x 8 keys a matrix: a lane's row is a query row, its chunk eight of the warp's 16
  // keys.
  const std::uint32_t ds_row = thread.group * sizeof(sm.ds[0].of_queries.half[0]) +
                               tile::OperandTile<kQueryRows>::chunk(thread.lane / 16 * 8 + thread.lane % 8,
                                                                    2 * thread.warp + thread.lane / 8 % 2);
  const Turns turns(thread.group);
  WorkReader<config.ctas> reader(sm);
  RingPosition<kStages.tiles> tile_at;
  RingPosition<kStages.ds> ds_at;
  for (int number = 0;; ++number) {  // of the item: says where K and V are, in one register
    const Work& work = reader.next();
    if (work.batch < 0) break;
    Item item;
    const int k_slot = number % kStages.k;
    wait(sm.k_full[k_slot], number / kStages.k % 2);
    load_fragments(item.k, sm.k[k_slot], thread);
    wait(sm.v_full, number % 2);
    load_fragments(item.v, sm.v, thread);
    __syncwarp();
    if (thread.lane == 0) {
      arrive(sm.k_empty[k_slot]);
      arrive(sm.v_empty);
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) item.dk[i] = item.dv[i] = 0;

    const int begin = work.begin, edge = work.edge, tail = work.tail, end = work.end;
    for (int head = work.heads; head > 0; --head) {
      int t = begin;
      const auto compute_until = [&](auto masked, int until) {
#pragma unroll 1
        for (; t < until; ++t) {
          wait(sm.tile_full[tile_at.slot], tile_at.full());
          Seen seen = {};
          if constexpr (masked) seen = Seen::of<config.mask>(p, work, thread, t * kQueryRows);
          compute_tile<config, masked>(p, sm, item, tile_at.slot, ds_at, ds_row, turns, seen);
          tile_at.advance();
          ds_at.advance();
        }
      };
      if constexpr (config.mask != Mask::kDense) compute_until(std::true_type(), edge);
      compute_until(std::false_type(), tail);
      if constexpr (config.mask == Mask::kWindow) compute_until(std::true_type(), end);
    }
    if constexpr (config.ctas == 1) {
      if (p.dk_accum) {
        stage_sums<config>(sm, item.dv, thread, ds_at);
        stage_sums<config>(sm, item.dk, thread, ds_at);
        continue;
      }
    }
    if (p.wide_dv.data) {
      store_wide(p, p.wide_dv, item.dv, 1.0f, thread.key(), work);
      store_wide(p, p.wide_dk, item.dk, p.scale, thread.key(), work);
    } else {
      stage_gradient<config>(sm, item.dv, 1.0f, thread, ds_at);
      ds_at.advance();
      stage_gradient<config>(sm, item.dk, p.scale, thread, ds_at);
      ds_at.advance();
    }
  }
  turns.end();
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

// --- of a pair: send and acknowledge, one thread each

// Goes through the stages of dS: `of_tile` where it is the turn of `whose`, `of_gradient` for dV and dK.
template <Config config, typename OfTile, typename OfGradient>
__device__ __forceinline__ void for_each_ds(const Parameters& p, SharedMemory<config.ctas>& sm, int whose,
                                            OfTile of_tile, OfGradient of_gradient) {
  WorkReader<config.ctas> reader(sm);
  RingPosition<stages_of(config.ctas).ds> ds_at;
  int turn = 0;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) return;
    if (threadIdx.x % 32 == 0) {
#pragma unroll 1
      for (int tiles = work.all_tiles(); tiles > 0; --tiles, ds_at.advance()) {
        if (turn == whose) of_tile(ds_at);
        turn ^= 1;
      }
      for (int gradients = p.wide_dv.data ? 0 : 2; gradients > 0; --gradients, ds_at.advance())
        of_gradient(ds_at);
    }
  }
}

// dS of the tiles that are the peer's turn, into the peer's shared memory.
template <Config config>
__device__ void send(const Parameters& p, SharedMemory<2>& sm, int rank) {
  RingPosition<kPeerStages> at;
  for_each_ds<config>(
      p, sm, rank ^ 1,
      [&](const auto& ds_at) {
        ptx::wait_for_cluster(sm.of_peer.ds_empty[at.slot], at.empty());
        wait(sm.ds_full[ds_at.slot], ds_at.full());
        FLASHBACK_MARK("send dS");
        ptx::send_bulk(rank ^ 1, sm.peer.ds[at.slot], &sm.ds[ds_at.slot], sm.of_peer.ds_full[at.slot]);
        at.advance();
      },
      // Only so that no phase of the barrier goes by unseen: two later it would look like this one.
      [&](const auto& ds_at) { wait(sm.ds_full[ds_at.slot], ds_at.full()); });
}

// What the peer has sent: once it is here, its stage there may be written again, for all that multiply would
// have arrived there.
template <Config config>
__device__ void acknowledge(const Parameters& p, SharedMemory<2>& sm, int rank) {
  RingPosition<kPeerStages> at;
  for_each_ds<config>(
      p, sm, rank,
      [&](const auto& ds_at) {
        arrive_and_expect(sm.of_peer.ds_full[at.slot], sizeof(sm.peer.ds[0]));
        ptx::wait_for_cluster(sm.of_peer.ds_full[at.slot], at.full());
        ptx::arrive_at(rank ^ 1, sm.ds_empty[ds_at.slot], kMultiplyWarps);
        at.advance();
      },
      [](const auto&) {});
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
