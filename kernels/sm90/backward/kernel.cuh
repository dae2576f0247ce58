// Attention gradients on sm_90a, head dim 64: the roles in the order of the data, then the kernel.
#pragma once

#include <type_traits>

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/matrix.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/shared/group_turns.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm90/backward/work.cuh"
#include "kernels/tile/ring.h"

namespace flashback::sm90::backward {

using tile::RingPosition;

using WorkReader = shared::WorkReader<SharedMemory>;

// --- load: one thread

template <Config config>
__device__ void load(const Parameters& p, SharedMemory& sm) {
  ptx::prefetch_tensor_map(&p.q);
  ptx::prefetch_tensor_map(&p.dout);
  ptx::prefetch_tensor_map(&p.k);
  ptx::prefetch_tensor_map(&p.v);
  RingPosition<kWorkStages> work_at;
  RingPosition<kKStages> k_at;
  RingPosition<1> v_at;
  RingPosition<kTileStages> tile_at;
  for (int ticket = static_cast<int>(blockIdx.x);;) {
    wait(sm.work_empty[work_at.slot], work_at.empty());
    Work& work = sm.work[work_at.slot];
    find_work<config.mask>(p, ticket, work);
    arrive(sm.work_full[work_at.slot]);
    work_at.advance();
    if (work.batch < 0) return;

    ptx::Coordinates5 at =
        shared::at_row(p.sequences.k, work.sight.k, work.key_row, work.kv_head, work.batch);
    wait(sm.k_empty[k_at.slot], k_at.empty());
    arrive_and_expect(sm.k_full[k_at.slot], sizeof(sm.k[0]));
    load_tensor(&sm.k[k_at.slot], &p.k, at, sm.k_full[k_at.slot]);
    k_at.advance();
    wait(sm.v_empty, v_at.empty());
    arrive_and_expect(sm.v_full, sizeof(sm.v));
    load_tensor(&sm.v, &p.v, at, sm.v_full);
    v_at.advance();

    for (int i = 0; i < 2 * p.group; ++i) {
      // Of each head from the work's first query tile to the last, then those before it.
      const int head = work.kv_head * p.group + i / 2;
      const int from = i % 2 == 0 ? work.first : work.begin, to = i % 2 == 0 ? work.end : work.first;
      at = shared::at_row(p.sequences.q, work.sight.q, from * kQueryRows, head, work.batch);
      const float* stats = p.stats + (query_number(p, work, head) + from) * kStatsFloats;
#pragma unroll 1
      for (int tiles = to - from; tiles > 0; --tiles) {
        const int slot = tile_at.slot;
        FLASHBACK_MARK("Q, dO");
        wait(sm.tile_empty[slot], tile_at.empty());
        arrive_and_expect(sm.tile_full[slot], kTileBytes);
        load_tensor(&sm.q[slot], &p.q, at, sm.tile_full[slot]);
        load_bulk(sm.stats[slot], stats, sizeof(sm.stats[slot]), sm.tile_full[slot]);
        load_tensor(&sm.dout[slot], &p.dout, at, sm.tile_full[slot]);
        tile_at.advance();
        at.row += kQueryRows;
        stats += kStatsFloats;
      }
    }
    // Only now, so that tickets begin in their order; the tiles in flight cover the way to the counter. With
    // a rotation key tiles of a block wait for each other, and no CTA may have two of them: it takes every
    // gridDim.x-th ticket, which is at least a block further.
    const int all = static_cast<int>(gridDim.x);
    ticket = p.rotation > 1 ? ticket + all : all + ptx::take_number(p.next_ticket);
  }
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
__device__ __forceinline__ void compute_tile(const Parameters& p, SharedMemory& sm, Item& item, int slot,
                                             RingPosition<kDsStages> ds_at, std::uint32_t ds_row, Turns turns,
                                             Seen seen) {
  constexpr Dtype kDtype = config.dtype;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint64_t q = ptx::wgmma_operand(&sm.q[slot]), dout = ptx::wgmma_operand(&sm.dout[slot]);
  float s[32], dp[32];
  FLASHBACK_MARK("S, dP");
  turns.take();
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
  FLASHBACK_MARK("dS");
  wait(sm.ds_empty[ds_at.slot], ds_at.empty());
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
template <Dtype dtype>
__device__ void stage_gradient(SharedMemory& sm, const float (&gradient)[32], float scale,
                               const ComputeThread& thread, RingPosition<kDsStages> at) {
  wait(sm.ds_empty[at.slot], at.empty());
  const std::uint32_t to = ptx::shared_address(&sm.ds[at.slot].gradient) + thread.matrix_chunk();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const float* const x = &gradient[8 * step];
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = shared::narrow<dtype>(scale * x[2 * i], scale * x[2 * i + 1]);
    ptx::store_matrix(to ^ (32 * step), words);
  }
  ptx::fence_async_shared();
  __syncwarp();
  if (thread.lane == 0) arrive(sm.ds_full[at.slot]);
}

// The same in fp32, straight to its tensor: of each key two channels at a time.
__device__ inline void store_wide(const Parameters& p, const common::View& view, const float (&gradient)[32],
                                  float scale, const ComputeThread& thread, const Work& work) {
  const int key = work.key_row + thread.key(), d = thread.lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (key + 8 * half >= work.sight.k.count) continue;
    float* const row = static_cast<float*>(view.data) + work.batch * view.batch_stride +
                       (work.sight.k.first + key + 8 * half) * view.row_stride +
                       work.kv_head * view.head_stride;
#pragma unroll
    for (int block = 0; block < 8; ++block) {
      if (8 * block >= p.head_dim) continue;
      float2* const to = reinterpret_cast<float2*>(row + 8 * block + d);
      const float* const x = &gradient[4 * block + 2 * half];
      const float2 before = p.accumulate ? *to : float2{0, 0};
      *to = {before.x + scale * x[0], before.y + scale * x[1]};
    }
  }
}

template <Config config>
__device__ void compute(const Parameters& p, SharedMemory& sm) {
  const ComputeThread thread;
  // Of dS, 8 query rows x 8 keys a matrix: a lane's row is a query row, its chunk eight of the warp's 16
  // keys.
  const std::uint32_t ds_row = thread.group * sizeof(sm.ds[0].half[0]) +
                               tile::OperandTile<kQueryRows>::chunk(thread.lane / 16 * 8 + thread.lane % 8,
                                                                    2 * thread.warp + thread.lane / 8 % 2);
  const Turns turns(thread.group);
  WorkReader reader(sm);
  RingPosition<kKStages> k_at;
  RingPosition<1> v_at;
  RingPosition<kTileStages> tile_at;
  RingPosition<kDsStages> ds_at;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    Item item;
    wait(sm.k_full[k_at.slot], k_at.full());
    load_fragments(item.k, sm.k[k_at.slot], thread);
    wait(sm.v_full, v_at.full());
    load_fragments(item.v, sm.v, thread);
    __syncwarp();
    if (thread.lane == 0) {
      arrive(sm.k_empty[k_at.slot]);
      arrive(sm.v_empty);
    }
    k_at.advance();
    v_at.advance();
#pragma unroll
    for (int i = 0; i < 32; ++i) item.dk[i] = item.dv[i] = 0;

    const int begin = work.begin, edge = work.edge, tail = work.tail, end = work.end;
    for (int head = p.group; head > 0; --head) {
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
    if (p.wide_dv.data) {
      store_wide(p, p.wide_dv, item.dv, 1.0f, thread, work);
      store_wide(p, p.wide_dk, item.dk, p.scale, thread, work);
    } else {
      stage_gradient<config.dtype>(sm, item.dv, 1.0f, thread, ds_at);
      ds_at.advance();
      stage_gradient<config.dtype>(sm, item.dk, p.scale, thread, ds_at);
      ds_at.advance();
    }
  }
  turns.end();
}

// --- multiply: a warpgroup

template <Config config>
__device__ void multiply(const Parameters& p, SharedMemory& sm) {
  constexpr Dtype kDtype = config.dtype;
  const int thread = static_cast<int>(threadIdx.x) % kGroupThreads, lane = thread % 32;
  WorkReader reader(sm);
  RingPosition<kKStages> k_at;
  RingPosition<kDsStages> ds_at;
  RingPosition<kDqStages> dq_at;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    wait(sm.k_full[k_at.slot], k_at.full());
    const std::uint64_t k = ptx::wgmma_operand(&sm.k[k_at.slot]);
#pragma unroll 1
    for (int tiles = work.tiles() * p.group; tiles > 0; --tiles) {
      wait(sm.ds_full[ds_at.slot], ds_at.full());
      const std::uint64_t ds = ptx::wgmma_operand(&sm.ds[ds_at.slot]);
      constexpr int kHalf = sizeof(sm.ds[0].half[0]) / 16;
      float dq[32];
      FLASHBACK_MARK("dQ");
      ptx::wgmma_fence();
      ptx::wgmma_fresh<kDtype, true>(dq, ds, k);
#pragma unroll
      for (int step = 1; step < 8; ++step)
        ptx::wgmma<kDtype, true>(dq, ds + step / 4 * kHalf + step % 4 * 2, k + 128 * step);
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      ptx::pin(dq);
      __syncwarp();
      if (lane == 0) arrive(sm.ds_empty[ds_at.slot]);
      ds_at.advance();

      FLASHBACK_MARK("store dQ");
      wait(sm.dq_empty[dq_at.slot], dq_at.empty());
      const std::uint32_t to = ptx::shared_address(sm.dq[dq_at.slot]) + thread * 16;
#pragma unroll
      for (int i = 0; i < 32; i += 4) {
        ptx::store_shared(to + i / 4 * kGroupThreads * 16, dq[i], dq[i + 1], dq[i + 2], dq[i + 3]);
      }
      ptx::fence_async_shared();
      __syncwarp();
      if (lane == 0) arrive(sm.dq_full[dq_at.slot]);
      dq_at.advance();
    }
    __syncwarp();
    if (lane == 0) arrive(sm.k_empty[k_at.slot]);
    k_at.advance();
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

// --- reduce: one thread for each stage of the dq ring, so that as many additions are in flight

template <Config config>
__device__ void reduce(const Parameters& p, SharedMemory& sm, int dq_stage) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  WorkReader reader(sm);
  std::uint32_t dq_parity = 0;
  int next = dq_stage;  // of the work's tiles, head after head, the first of this thread
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    if (lane == 0) {
      const int tiles = work.tiles();
      for (int i = 0; i < p.group; ++i, next -= tiles) {
        const std::int64_t sequence = query_number(p, work, work.kv_head * p.group + i);
#pragma unroll 1
        for (; next < tiles; next += kDqStages) {
          FLASHBACK_MARK("add dQ");
          const int along = work.first + next, t = along < work.end ? along : along - tiles;
          float* const to = p.dq_accum + (sequence + t) * kDqFloats;
          wait(sm.dq_full[dq_stage], dq_parity);
          std::int32_t* const additions = p.dq_turns ? p.dq_turns + sequence + t : nullptr;
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

// --- the kernel

__device__ inline void initialise_barriers(SharedMemory& sm) {
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
  ptx::fence_initialised_barriers();
}

template <Config config>
__device__ void backward(const Parameters& p) {
  static_assert(config.head_dim == kHeadDim);
  extern __shared__ SharedMemory dynamic_shared[];
  SharedMemory& sm = dynamic_shared[0];
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  if (threadIdx.x == 0) initialise_barriers(sm);
  __syncthreads();

  const Role role = role_of(warp);
  if (role == Role::kCompute) {
    ptx::raise_registers<kComputeRegisters>();
    compute<config>(p, ptx::in_register(sm));
  } else if (role == Role::kMultiply) {
    ptx::lower_registers<kMultiplyRegisters>();
    multiply<config>(p, sm);
  } else {
    ptx::lower_registers<kServiceRegisters>();
    if (role == Role::kLoad) {
      if (threadIdx.x == 0) load<config>(p, sm);
    } else if (role == Role::kReduce) {
      reduce<config>(p, sm, warp - kFirstReduceWarp);
    }
  }
}

}  // namespace flashback::sm90::backward
