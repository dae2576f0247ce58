// Attention gradients on sm_90a, head dim 128: the roles in the order of the data, then the kernel.
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
#include "kernels/shared/entry.cuh"
#include "kernels/shared/load_tile.cuh"
#include "kernels/sm90/backward/reduce.cuh"
#include "kernels/sm90/backward/store.cuh"
#include "kernels/sm90/backward_wide/config.h"
#include "kernels/tile/ring.h"

namespace flashback::sm90::backward_wide {

using tile::RingPosition;
using WorkReader = shared::WorkReader<SharedMemory>;

// Bytes from the start of shared memory.
template <typename T>
__device__ std::uint32_t offset_in(const SharedMemory& sm, const T& object) {
  return static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(&object) -
                                    reinterpret_cast<const std::byte*>(&sm));
}

// This warp's part of a phase that counts warps.
__device__ inline void arrive_as_warp(ptx::Barrier& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(barrier);
}

// --- load: one thread

__device__ inline void load_keys(Side& side, const TensorMapBytes& map, ptx::Coordinates5 at,
                                 std::uint32_t empty) {
  wait(side.keys_empty, empty);
  arrive_and_expect(side.keys_full, sizeof(side.keys));
  shared::load_slabs(side.keys, map, at, side.keys_full);
}

__device__ inline void load_rows(Side& side, const TensorMapBytes& map, ptx::Coordinates5 at,
                                 const float* stats, const RingPosition<kTileStages>& tile_at) {
  const int slot = tile_at.slot;
  wait(side.rows_empty[slot], tile_at.empty());
  arrive_and_expect(side.rows_full[slot], kRowsBytes);
  shared::load_slabs(side.rows[slot], map, at, side.rows_full[slot]);
  load_bulk(side.stats[slot], stats, sizeof(side.stats[slot]), side.rows_full[slot]);
}

template <Config config>
__device__ void load(const Parameters& p, SharedMemory& sm) {
  ptx::prefetch_tensor_map(&p.q);
  ptx::prefetch_tensor_map(&p.dout);
  ptx::prefetch_tensor_map(&p.k);
  ptx::prefetch_tensor_map(&p.v);
  Side &values = sm.side[kValues], &keys = sm.side[kKeys];
  RingPosition<kWorkStages> work_at;
  RingPosition<1> keys_at;
  RingPosition<kTileStages> tile_at;
  for (int ticket = static_cast<int>(blockIdx.x);;) {
    wait(sm.work_empty[work_at.slot], work_at.empty());
    Work& work = sm.work[work_at.slot];
    find_work<config>(p, ticket, 0, work);
    arrive(sm.work_full[work_at.slot]);
    work_at.advance();
    if (work.batch < 0) return;

    bool has_keys = false;
    for (int i = 0; i < 2 * work.heads; ++i) {
      // Of each head from the work's first query tile to the last, then those before it.
      const int head = work.head + i / 2;
      const int from = i % 2 == 0 ? work.first : work.begin, to = i % 2 == 0 ? work.end : work.first;
      ptx::Coordinates5 at = shared::at_row(p.sequences.q, work.sight.q, from * kQueryRows, head, work.batch);
      const float* stats = p.stats + (query_number(p, work, head) + from) * backward::kStatsFloats;
#pragma unroll 1
      for (int tiles = to - from; tiles > 0; --tiles) {
        FLASHBACK_MARK("Q, dO");
        load_rows(keys, p.q, at, stats, tile_at);
        load_rows(values, p.dout, at, stats + kQueryRows, tile_at);
        tile_at.advance();
        at.row += kQueryRows;
        stats += backward::kStatsFloats;
        if (has_keys) continue;
        // Only now: the first queries may come while the item before still needs its keys.
        has_keys = true;
        const ptx::Coordinates5 key =
            shared::at_row(p.sequences.k, work.sight.k, work.key_row, work.kv_head, work.batch);
        load_keys(values, p.v, key, keys_at.empty());
        load_keys(keys, p.k, key, keys_at.empty());
        keys_at.advance();
      }
    }
    // Only now, so that tickets begin in their order; the tiles in flight cover the way to the counter.
    ticket = next_ticket(p, ticket);
  }
}

// --- compute: a warpgroup, all query rows and keys of a tile

// Where a thread of a warpgroup works: rows `row` and `row` + 8 of a product, of each block of eight columns
// two, from 2 * (lane % 4) on.
struct GroupThread {
  int warp, lane;

  __device__ explicit GroupThread(int thread = static_cast<int>(threadIdx.x))
      : warp(thread / 32 % kGroupWarps), lane(thread % 32) {}
  __device__ int row() const { return warp * 16 + lane / 4; }
  // What the lane addresses of 16 rows x 16 elements, a tile's first ones of this warp, in a matrix store
  // along the rows. The swizzle makes of a step of 16 elements an exclusive or with 32.
  __device__ std::uint32_t matrix_chunk() const {
    return tile::OperandTile<kGroupKeys>::chunk(warp * 16 + lane % 16, lane / 16);
  }
};

// 64 rows x 128 columns of a product: of block b of eight columns four, two of either row.
using Accumulator = float[64];

// The statistics of the thread's two rows.
struct RowValues {
  float of_row[2];

  __device__ RowValues(const float (&stats)[kQueryRows], const GroupThread& thread)
      : of_row{stats[backward::stats_position(thread.row())],
               stats[backward::stats_position(thread.row() + 8)]} {}
  // Of element e (0..3) of a block.
  __device__ float at(int e) const { return of_row[e / 2]; }
};

// Which keys of the item the thread's two rows see, counted from the thread's first one. Those of the second
// row begin eight later.
struct Seen {
  int from, to;

  // In the tile from query row `row` on.
  template <Mask mask>
  __device__ static Seen of(const Parameters& p, const Work& work, const GroupThread& thread, int row) {
    const shared::Band band = shared::band_of(mask, work.sight.lengths(p.sequences));
    const int at = row + thread.row() - work.key_row - thread.lane % 4 * 2;
    return {at + band.begin, at + band.end};
  }
  // Whether element e (0..3) of the block is hidden.
  template <Mask mask>
  __device__ bool hides(int block, int e) const {
    const int key = 8 * block + e % 2 - e / 2 * 8;
    return key >= to || (mask == Mask::kWindow && key < from);
  }
};

// D = A B^T along the channels of both: S of Q and K, dP of dO and V.
template <Dtype dtype>
__device__ __forceinline__ void multiply_rows(Accumulator& d, const tile::OperandTile<kQueryRows>* rows,
                                              const tile::OperandTile<kKeyRows>* keys) {
  const std::uint64_t a = ptx::wgmma_operand(rows), b = ptx::wgmma_operand(keys);
  ptx::wgmma_fence();
  ptx::wgmma_fresh<dtype, false>(d, a, b);
#pragma unroll
  for (int step = 1; step < kHeadDim / 16; ++step)
    ptx::wgmma<dtype, false>(d, a + step / 4 * (sizeof(*rows) / 16) + step % 4 * 2,
                             b + step / 4 * (sizeof(*keys) / 16) + step % 4 * 2);
  ptx::wgmma_commit();
}

// dQ = dS K.
template <Dtype dtype>
__device__ __forceinline__ void multiply_dq(Accumulator& dq, const Side& keys) {
  const std::uint64_t k = ptx::wgmma_operand(keys.keys, sizeof(keys.keys[0]));
  const std::uint64_t ds = ptx::wgmma_operand(keys.weights);
  ptx::wgmma_fence();
  ptx::wgmma_fresh<dtype, true>(dq, ds, k);
#pragma unroll
  for (int step = 1; step < kKeyRows / 16; ++step)
    ptx::wgmma<dtype, true>(dq, ds + step / 4 * (sizeof(keys.weights[0]) / 16) + step % 4 * 2,
                            k + 128 * step);
  ptx::wgmma_commit();
}

// A finished dQ on its way to reduce, which may have it once asynchronous units see it.
__device__ __forceinline__ void stage_dq(SharedMemory& sm, const Accumulator& dq, std::uint32_t tile) {
  const auto at = RingPosition<kDqStages>::after(tile);
  wait(sm.dq_empty[at.slot], at.empty());
  FLASHBACK_MARK("store dQ");
  const std::uint32_t to = ptx::shared_address(sm.dq[at.slot]) + threadIdx.x % kGroupThreads * 16;
#pragma unroll
  for (int i = 0; i < 64; i += 4)
    ptx::store_shared(to + i / 4 * kGroupThreads * 16, dq[i], dq[i + 1], dq[i + 2], dq[i + 3]);
}

// What a compute warpgroup has done. Where it is in its rings follows from that, in few registers.
struct Done {
  std::uint32_t tiles = 0;    // query tiles
  std::uint32_t items = 0;    // that had tiles
  std::uint32_t weights = 0;  // phases of P's and dS's tiles: those of query tiles, and one for each gradient
};

// Sixteen columns of a product, rounded, as they are stored.
template <Dtype dtype>
__device__ __forceinline__ void narrow_step(std::uint32_t (&words)[4], const float* x) {
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = shared::narrow<dtype>(x[2 * i], x[2 * i + 1]);
}

// One query tile up to its dS, which all four warps have stored in the end; and dQ of the one before, unless
// the tile is the item's `first`. What others wait for is said late, where it costs this warpgroup nothing:
// shared memory has stored by then, and dV and dK run where the tensor cores would idle.
template <Config config, bool first, bool masked>
__device__ __forceinline__ void compute_tile(const Parameters& p, SharedMemory& shared, Done& done,
                                             const Work& work, int t) {
  constexpr Dtype kDtype = config.dtype;
  constexpr int kSteps = kKeyRows / 16;
  // What follows from these is made anew in each tile: kept for all of them it would take the registers.
  SharedMemory& sm = ptx::in_register(shared);
  const GroupThread thread(ptx::thread_read_anew());
  Side &values = sm.side[kValues], &keys = sm.side[kKeys];
  const auto tile_at = RingPosition<kTileStages>::after(done.tiles);
  const auto keys_at = RingPosition<1>::after(done.items), weights_at = RingPosition<1>::after(done.weights);
  const int slot = tile_at.slot;
  Seen seen = {};
  if constexpr (masked) seen = Seen::of<config.mask>(p, work, thread, t * kQueryRows);
  Accumulator s, dq, dp;
  if constexpr (!first) {
    FLASHBACK_MARK("dQ");
    multiply_dq<kDtype>(dq, keys);
  }
  if constexpr (first) wait(keys.keys_full, keys_at.full());
  wait(keys.rows_full[slot], tile_at.full());
  FLASHBACK_MARK("S");
  multiply_rows<kDtype>(s, keys.rows[slot], keys.keys);
  if constexpr (!first) {
    ptx::wgmma_wait<1>();
    ptx::pin(dq);
    stage_dq(sm, dq, done.tiles - 1);
  }
  if constexpr (first) wait(values.keys_full, keys_at.full());
  wait(values.rows_full[slot], tile_at.full());
  FLASHBACK_MARK("dP");
  multiply_rows<kDtype>(dp, values.rows[slot], values.keys);

  const RowValues lse(keys.stats[slot], thread);
  wait(values.weights_empty, weights_at.empty());
  ptx::wgmma_wait<1>();
  ptx::pin(s);
  FLASHBACK_MARK("softmax");
  const std::uint32_t chunk = ptx::shared_address(&sm) + thread.matrix_chunk();
  const auto store = [&](const Side& side, int step, const std::uint32_t(&words)[4]) {
    ptx::store_matrix((chunk ^ (32 * (step % 4))) + offset_in(sm, side.weights[step / 4]), words);
  };
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    float* const x = &s[8 * step];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      // lse - S is positive but for rounding, which for scores of 1e8 is an error of several units: taken as
      // its magnitude, P does not exceed 1.
      x[i] = ptx::exp2(-fabsf(fmaf(x[i], -p.scale_log2, lse.at(i % 4))));
      if constexpr (masked) x[i] = seen.hides<config.mask>(2 * step + i / 4, i % 4) ? 0.0f : x[i];
    }
    std::uint32_t words[4];
    narrow_step<kDtype>(words, x);
    store(values, step, words);
    if (step == kAnnounceStep) {
      if constexpr (!first) ptx::fence_async_shared();
      __syncwarp();
      if (thread.lane == 0) {
        arrive(keys.rows_empty[slot]);
        if constexpr (!first) {
          arrive(sm.dq_full[0]);
          arrive(keys.weights_full);  // dS of the tile before
        }
      }
    }
  }

  const RowValues delta(values.stats[slot], thread);
  ptx::wgmma_wait<0>();
  ptx::pin(dp);
  FLASHBACK_MARK("dS");
  const auto make_ds = [&](std::uint32_t(&words)[4], int step) {
    float* const x = &dp[8 * step];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[i] = s[8 * step + i] * (x[i] - delta.at(i % 4));
      // Not 0 * (dP - delta): delta of a row that sees no key is what its out happens to hold, maybe NaN.
      if constexpr (masked) x[i] = seen.hides<config.mask>(2 * step + i / 4, i % 4) ? 0.0f : x[i];
    }
    narrow_step<kDtype>(words, x);
  };
  std::uint32_t ds[kSteps / 2][4];
#pragma unroll
  for (int step = 0; step < kSteps / 2; ++step) make_ds(ds[step], step);
  ptx::fence_async_shared();
  __syncwarp();
  if (thread.lane == 0) {
    arrive(values.rows_empty[slot]);
    arrive(values.weights_full);
  }
  wait(keys.weights_empty, weights_at.empty());
#pragma unroll
  for (int step = 0; step < kSteps / 2; ++step) store(keys, step, ds[step]);
#pragma unroll
  for (int step = kSteps / 2; step < kSteps; ++step) {
    make_ds(ds[0], step);
    store(keys, step, ds[0]);
  }
  ptx::fence_async_shared();
  ptx::sync<kComputeBarrier, kGroupThreads>();
  ++done.tiles;
  ++done.weights;
}

template <Config config>
__device__ void compute(const Parameters& p, SharedMemory& sm) {
  constexpr bool kMasked = config.mask != Mask::kDense;
  WorkReader reader(sm);
  Done done;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    if (work.tiles() > 0) {
      int t = work.begin;
      compute_tile<config, true, kMasked>(p, sm, done, work, t);
#pragma unroll 1
      for (int more = work.all_tiles() - 1; more > 0; --more) {
        if (++t == work.end) t = work.begin;  // of the next head
        if (kMasked && (t < work.edge || t >= work.tail)) {
          compute_tile<config, false, kMasked>(p, sm, done, work, t);
        } else {
          compute_tile<config, false, false>(p, sm, done, work, t);
        }
      }
      arrive_as_warp(sm.side[kValues].keys_empty);
      arrive_as_warp(sm.side[kKeys].weights_full);
      Accumulator dq;
      FLASHBACK_MARK("dQ");
      multiply_dq<config.dtype>(dq, sm.side[kKeys]);
      ptx::wgmma_wait<0>();
      ptx::pin(dq);
      arrive_as_warp(sm.side[kKeys].keys_empty);
      stage_dq(sm, dq, done.tiles - 1);
      ptx::fence_async_shared();
      arrive_as_warp(sm.dq_full[0]);
      ++done.items;
    }
    if (p.wide_dv.data) continue;
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      Side& side = sm.side[which];
      wait(side.weights_empty, RingPosition<1>::after(done.weights).empty());
      arrive_as_warp(side.weights_full);
    }
    ++done.weights;
  }
}

// --- accumulate: a warpgroup for dV, one for dK

// The gradients of keys 0-63 and 64-127.
using Gradient = Accumulator[2];

// In the type of the tensors, by way of the tile of weights.
template <Dtype dtype>
__device__ void store_gradient(const Parameters& p, Side& side, const TensorMapBytes& map, const Work& work,
                               const Gradient& gradient, float scale, const GroupThread& thread,
                               int barrier) {
  const bool stores = threadIdx.x % kGroupThreads == 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (half > 0) {
      if (stores) ptx::wait_bulk_read<0>();
      ptx::sync<kGroupThreads>(barrier);
    }
#pragma unroll
    for (int step = 0; step < kHeadDim / 16; ++step) {
      const float* const x = &gradient[half][8 * step];
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = shared::narrow<dtype>(scale * x[2 * i], scale * x[2 * i + 1]);
      ptx::store_matrix(
          (ptx::shared_address(&side.weights[step / 4]) + thread.matrix_chunk()) ^ (32 * (step % 4)), words);
    }
    ptx::fence_async_shared();
    ptx::sync<kGroupThreads>(barrier);
    if (stores) {
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        ptx::store_tensor(&map,
                          shared::at_row(p.sequences.k, work.sight.k, work.key_row + half * kGroupKeys,
                                         work.kv_head, work.batch, slab * tile::kRowElements),
                          ptx::shared_address(&side.weights[slab]));
      }
      ptx::commit_bulk_group();
    }
  }
  if (stores) ptx::wait_bulk_read<0>();
}

template <Config config>
__device__ void accumulate(const Parameters& p, SharedMemory& sm, int which) {
  Side& side = sm.side[which];
  const float scale = which == kValues ? 1.0f : p.scale;
  const GroupThread thread;
  WorkReader reader(sm);
  RingPosition<kTileStages> tile_at;
  RingPosition<1> weights_at;
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    Gradient gradient;
#pragma unroll
    for (int i = 0; i < 64; ++i) gradient[0][i] = gradient[1][i] = 0;
#pragma unroll 1
    for (int tiles = work.all_tiles(); tiles > 0; --tiles) {
      wait(side.rows_full[tile_at.slot], tile_at.full());
      wait(side.weights_full, weights_at.full());
      FLASHBACK_MARK("dV, dK");
      const Side& here = ptx::in_register(side);  // as in compute_tile
      const std::uint64_t rows = ptx::wgmma_operand(here.rows[tile_at.slot], sizeof(here.rows[0][0]));
      ptx::wgmma_fence();
#pragma unroll
      for (int step = 0; step < kQueryRows / 16; ++step) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          ptx::wgmma<config.dtype, true, true>(
              gradient[half], ptx::wgmma_operand(&here.weights[half]) + 128 * step, rows + 128 * step);
      }
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      ptx::pin(gradient[0]);
      ptx::pin(gradient[1]);
      arrive_as_warp(side.weights_empty);
      arrive_as_warp(side.rows_empty[tile_at.slot]);
      tile_at.advance();
      weights_at.advance();
    }
    if (p.wide_dv.data) {
      const common::View& view = which == kValues ? p.wide_dv : p.wide_dk;
#pragma unroll
      for (int half = 0; half < 2; ++half)
        store_wide(p, view, gradient[half], scale, half * kGroupKeys + thread.row(), work);
      continue;
    }
    wait(side.weights_full, weights_at.full());
    store_gradient<config.dtype>(p, side, which == kValues ? p.dv : p.dk, work, gradient, scale, thread,
                                 kFirstAccumulateBarrier + which);
    arrive_as_warp(side.weights_empty);
    weights_at.advance();
  }
  if (threadIdx.x % kGroupThreads == 0) ptx::wait_bulk();
}

// --- the kernel

__device__ inline void initialise_barriers(SharedMemory& sm) {
  for (Side& side : sm.side) {
    ptx::initialise(side.keys_full, 1);
    ptx::initialise(side.keys_empty, kGroupWarps);
    ptx::initialise(side.rows_full, 1);
    ptx::initialise(side.rows_empty, 2 * kGroupWarps);
    ptx::initialise(side.weights_full, kGroupWarps);
    ptx::initialise(side.weights_empty, kGroupWarps);
  }
  ptx::initialise(sm.work_full, 1);
  ptx::initialise(sm.work_empty, kWorkReaders);
  ptx::initialise(sm.dq_full, kGroupWarps);
  ptx::initialise(sm.dq_empty, 1);
  ptx::fence_initialised_barriers();
}

template <Config config>
__device__ void backward(const Parameters& p) {
  static_assert(config.head_dim == kHeadDim && config.ctas == 1);
  auto& sm = shared::dynamic_shared_memory<SharedMemory>();
  const int warp = shared::this_warp();
  if (threadIdx.x == 0) initialise_barriers(sm);
  __syncthreads();

  const Role role = role_of(warp);
  if (role == Role::kCompute) {
    ptx::raise_registers<kComputeRegisters>();
    compute<config>(p, ptx::in_register(sm));
  } else if (role == Role::kAccumulate) {
    ptx::raise_registers<kAccumulateRegisters>();
    accumulate<config>(p, ptx::in_register(sm), (warp - kFirstAccumulateWarp) / kGroupWarps);
  } else {
    ptx::lower_registers<kServiceRegisters>();
    if (role == Role::kLoad && threadIdx.x == 0) load<config>(p, sm);
    if (role == Role::kReduce) backward::reduce<config, 1>(p, sm, 0, 0);
  }
}

}  // namespace flashback::sm90::backward_wide
