// The compute role: two warpgroups, 64 keys each.
#pragma once

#include <type_traits>

#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/matrix.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/shared/group_turns.cuh"
#include "kernels/sm90/backward/pair.cuh"
#include "kernels/sm90/backward/store.cuh"

namespace flashback::sm90::backward {

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

}  // namespace flashback::sm90::backward
