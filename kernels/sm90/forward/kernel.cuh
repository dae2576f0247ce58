// Attention on sm_90a: the roles in the order of the data, then the kernel.
#pragma once

#include <type_traits>

#include "kernels/common/load_items.cuh"
#include "kernels/common/row_end.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/matrix.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/shared/convert.cuh"
#include "kernels/shared/entry.cuh"
#include "kernels/shared/group_turns.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm90/forward/work.cuh"
#include "kernels/tile/ring.h"

namespace flashback::sm90::forward {

using tile::RingPosition;

// --- compute: warpgroups of 64 queries each

// Where a compute thread works: rows `row` and `row` + 8 of the tile; of each block of eight keys, and of
// eight channels, two, from 2 * (lane % 4) on.
//
// Made where it is needed: what follows from it is not worth registers while tiles stream past.
struct ComputeThread {
  int group, warp, lane;

  __device__ ComputeThread() {
    const int thread = ptx::thread_read_anew();
    group = __shfl_sync(0xffffffff, thread / kGroupThreads - 1, 0);  // known to be the warp's
    warp = thread / 32 % kGroupWarps;
    lane = thread % 32;
  }
  __device__ int first_row() const { return group * kGroupRows + warp * 16; }  // of the warp's 16
  __device__ int row() const { return first_row() + lane / 4; }
};

// Scores of a tile of keys, or weights: of block b of eight keys four, two of either row.
using Scores = float[kKeyRows / 2];
// Weights as A operands: a step is 16 keys, two blocks of scores.
using Weights = std::uint32_t[kKeyRows / 16][4];

// The softmax of the thread's two rows so far. `largest` is of scores without scale; `sum` is of this
// thread's keys only.
struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};

// Which keys of a tile the thread's two rows see, counted from the thread's first one. Those of the second
// row begin eight later.
struct Seen {
  int from, to[2];

  __device__ static Seen of(const Work& work, int key) {
    const ComputeThread thread;
    const int row = work.row + thread.row(), first = key + thread.lane % 4 * 2;
    const int end = row + work.band.end;
    return {row + work.band.begin - first,
            {min(end, work.sight.k.count) - first, min(end + 8, work.sight.k.count) - first}};
  }
  // Whether element e (0..3) of the block is hidden.
  template <Mask mask>
  __device__ bool hides(int block, int e) const {
    const int key = 8 * block + e % 2;
    return key >= to[e / 2] || (mask == Mask::kWindow && key < from + e / 2 * 8);
  }
};

// Scores become weights relative to the largest score so far; `factor` is what earlier weights shrink by.
template <Mask mask, bool masked>
__device__ __forceinline__ void weigh(Scores& s, Softmax& softmax, float (&factor)[2], float scale_log2,
                                      const Seen& seen) {
  constexpr int kBlocks = kKeyRows / 8;
  if constexpr (masked) {
#pragma unroll
    for (int i = 0; i < kKeyRows / 2; ++i) s[i] = seen.hides<mask>(i / 4, i % 4) ? -INFINITY : s[i];
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float even = softmax.largest[half], odd = even;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      even = fmaxf(even, s[4 * block + 2 * half]);
      odd = fmaxf(odd, s[4 * block + 2 * half + 1]);
    }
    float largest = fmaxf(even, odd);
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 2));
    // A row that has seen no key yet: every weight is exp2(-inf).
    const float shift = masked && largest == -INFINITY ? 0.0f : largest * scale_log2;
    factor[half] = ptx::exp2(-fabsf(fmaf(softmax.largest[half], scale_log2, -shift)));
    softmax.largest[half] = largest;
    float even_sum = 0, odd_sum = 0;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      float *const x = &s[4 * block + 2 * half], *const y = x + 1;
      // Never positive but for rounding, which for scores of 1e8 is an error of several units: taken as minus
      // its magnitude, no weight exceeds 1.
      *x = ptx::exp2(-fabsf(fmaf(*x, scale_log2, -shift)));
      *y = ptx::exp2(-fabsf(fmaf(*y, scale_log2, -shift)));
      even_sum += *x;
      odd_sum += *y;
    }
    softmax.sum[half] = fmaf(softmax.sum[half], factor[half], even_sum + odd_sum);
  }
}

template <Dtype dtype>
__device__ __forceinline__ void to_operand(Weights& weights, const Scores& s) {
#pragma unroll
  for (int i = 0; i < kKeyRows / 4; ++i)
    weights[i / 4][i % 4] = shared::narrow<dtype>(s[2 * i], s[2 * i + 1]);
}

// S = Q K^T of a stage, along the rows of both.
template <Config config>
__device__ __forceinline__ void multiply_scores(Scores& s, std::uint64_t q, std::uint64_t k) {
  using Shared = SharedMemory<config>;
  ptx::wgmma_fence();
  ptx::wgmma_fresh<config.dtype, false>(s, q, k);
#pragma unroll
  for (int step = 1; step < config.head_dim / 16; ++step) {
    const int slab = step / 4, in_slab = step % 4 * 2;
    ptx::wgmma<config.dtype, false>(s, q + slab * (Shared::QueryTile::kBytes / 16) + in_slab,
                                    k + slab * (Shared::KeyTile::kBytes / 16) + in_slab);
  }
  ptx::wgmma_commit();
}

// O += P V of a stage, down the columns of V.
template <Config config>
__device__ __forceinline__ void multiply_values(float (&o)[config.head_dim / 2], const Weights& weights,
                                                std::uint64_t v) {
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kKeyRows / 16; ++step)
    ptx::wgmma<config.dtype, true>(o, weights[step], v + 128 * step);
  ptx::wgmma_commit();
}

// The same rows with the other sign.
template <Config config>
__device__ void negate_queries(SharedMemory<config>& sm, int slot, const ComputeThread& thread) {
  FLASHBACK_MARK("negate Q");
  for (int slab = 0; slab < config.slabs(); ++slab) {
    const std::uint32_t rows =
        ptx::shared_address(&sm.q[slot][slab]) + thread.first_row() * tile::kRowBytes + thread.lane * 16;
#pragma unroll
    for (int i = 0; i < 16 * tile::kRowBytes; i += 32 * 16) {
      const auto negated = [](float pair) { return __float_as_uint(pair) ^ 0x80008000u; };
      float4 x;
      ptx::load_shared(x, rows + i);
      ptx::store_shared(rows + i, negated(x.x), negated(x.y), negated(x.z), negated(x.w));
    }
  }
  ptx::fence_async_shared();
  __syncwarp();
}

// The ends of the thread's two rows, whose sums so far are of its own keys only.
struct RowEnds {
  common::RowEnd of_row[2];

  __device__ RowEnds(const Parameters& p, int head, const Softmax& softmax)
      : of_row{end_of(p, head, softmax, 0), end_of(p, head, softmax, 1)} {}

 private:
  __device__ static common::RowEnd end_of(const Parameters& p, int head, const Softmax& softmax, int half) {
    float sum = softmax.sum[half];
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    sum += __shfl_xor_sync(0xffffffff, sum, 2);
    return {p, head, sum, softmax.largest[half] * p.scale_log2};
  }
};

// O and lse to global memory. O goes through the warp's own rows of Q, so that whole rows leave.
template <Config config>
__device__ void store_rows(const Parameters& p, SharedMemory<config>& sm, int slot, const Work& work,
                           const float (&o)[config.head_dim / 2], const RowEnds& ends) {
  const ComputeThread thread;
  const int rows = work.sight.q.count - work.row;  // from the tile's first one on
  if (work.to.lse && thread.lane % 4 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = thread.row() + 8 * half;
      if (row < rows) work.to.lse[row] = ends.of_row[half].lse;
    }
  }
#pragma unroll
  for (int slab = 0; slab < config.slabs(); ++slab) {
    const std::uint32_t staging = ptx::shared_address(&sm.q[slot][slab]);
    const std::uint32_t to = staging + SharedMemory<config>::QueryTile::chunk(
                                           thread.first_row() + thread.lane % 16, thread.lane / 16);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const float* const x = &o[32 * slab + 8 * step];
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float scale = ends.of_row[i % 2].scale;
        words[i] = shared::narrow<config.dtype>(scale * x[2 * i], scale * x[2 * i + 1]);
      }
      ptx::store_matrix(to ^ (32 * step), words);
    }
    __syncwarp();
    common::store_whole_rows<16>(p, work.to.out, staging + thread.first_row() * tile::kRowBytes,
                                 thread.first_row(), rows, slab, thread.lane);
  }
  ptx::fence_async_shared();
}

template <Config config>
__device__ void compute(const Parameters& p, SharedMemory<config>& sm) {
  const ComputeThread thread;
  const shared::GroupTurns<config.groups(), kFirstTurnBarrier> turns(thread.group);
  shared::WorkReader<SharedMemory<config>> reader(sm);
  RingPosition<kQueryStages> q_at;
  RingPosition<config.key_stages()> key_at;  // the next K; the next V to be multiplied is before it
  const auto release = [&](ptx::Barrier& barrier) {
    __syncwarp();
    if (thread.lane == 0) arrive(barrier);
  };
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    float o[config.head_dim / 2];
    Scores s;
    Weights weights;
    Softmax softmax;
    float factor[2];
    const shared::KeyTiles& tiles = work.seen[thread.group];
    // Tiles that the other warpgroups see: this one hands them back, and its turns on.
    const auto pass_over = [&](int count) {
#pragma unroll 1
      for (; count > 0; --count) {
        FLASHBACK_MARK("pass over");
        wait(sm.k_full[key_at.slot], key_at.full());
        turns.take();
        turns.pass();
        release(sm.k_empty[key_at.slot]);
        wait(sm.v_full[key_at.slot], key_at.full());
        release(sm.v_empty[key_at.slot]);
        key_at.advance();
      }
    };

    wait(sm.q_full[q_at.slot], q_at.full());
    pass_over(work.keys.end - tiles.end);
    if (tiles.begin == tiles.end) {
      FLASHBACK_MARK("pass over");
      release(sm.q_empty[q_at.slot]);
      q_at.advance();
      continue;
    }
    int t = tiles.end - 1;
    if (p.negate_q) negate_queries<config>(sm, q_at.slot, thread);
    const std::uint64_t q =
        ptx::wgmma_operand(&sm.q[q_at.slot]) + thread.group * (kGroupRows * tile::kRowBytes / 16);
    const auto keys = [&] { return ptx::wgmma_operand(&sm.k[key_at.slot]); };
    const auto multiply_last_values = [&](float(&o)[config.head_dim / 2], const Weights& weights) {
      const auto at = key_at.before();
      wait(sm.v_full[at.slot], at.full());
      multiply_values<config>(o, weights,
                              ptx::wgmma_operand(&sm.v[at.slot], SharedMemory<config>::KeyTile::kBytes));
    };
    FLASHBACK_MARK("S");
    wait(sm.k_full[key_at.slot], key_at.full());
    turns.take();
    multiply_scores<config>(s, q, keys());
    turns.pass();
    ptx::wgmma_wait<0>();
    ptx::pin(s);
    release(sm.k_empty[key_at.slot]);
    key_at.advance();
    FLASHBACK_MARK("softmax");
    if (config.mask == Mask::kDense && t < tiles.edge) {
      weigh<config.mask, false>(s, softmax, factor, p.scale_log2, {});
    } else {
      weigh<config.mask, true>(s, softmax, factor, p.scale_log2, Seen::of(work, t * kKeyRows));
    }
    to_operand<config.dtype>(weights, s);
#pragma unroll
    for (float& x : o) x = 0;

    const auto visit_down_to = [&](auto masked, int until) {
#pragma unroll 1
      while (t > until) {
        --t;
        FLASHBACK_MARK("S, O");
        wait(sm.k_full[key_at.slot], key_at.full());
        turns.take();
        multiply_scores<config>(s, q, keys());
        multiply_last_values(o, weights);
        turns.pass();
        ptx::wgmma_wait<1>();
        ptx::pin(s);
        release(sm.k_empty[key_at.slot]);
        FLASHBACK_MARK("softmax");
        Seen keys_seen = {};
        if constexpr (masked) keys_seen = Seen::of(work, t * kKeyRows);
        weigh<config.mask, masked>(s, softmax, factor, p.scale_log2, keys_seen);
        // Nothing stays in flight over the back edge of the loop: the compiler would serialise every product.
        ptx::wgmma_wait<0>();
        ptx::pin(o);
        release(sm.v_empty[key_at.before().slot]);
        key_at.advance();
#pragma unroll
        for (int i = 0; i < config.head_dim / 2; ++i) o[i] *= factor[i / 2 % 2];
        to_operand<config.dtype>(weights, s);
      }
    };
    if constexpr (config.mask == Mask::kDense) visit_down_to(std::false_type(), 0);
    if constexpr (config.mask == Mask::kCausal) {
      visit_down_to(std::true_type(), tiles.edge);
      visit_down_to(std::false_type(), 0);
    }
    if constexpr (config.mask == Mask::kWindow) {
      visit_down_to(std::true_type(), max(tiles.edge, tiles.begin));
      visit_down_to(std::false_type(), max(tiles.whole, tiles.begin));
      visit_down_to(std::true_type(), tiles.begin);
    }

    FLASHBACK_MARK("O");
    multiply_last_values(o, weights);
    const RowEnds ends(p, work.head, softmax);
    ptx::wgmma_wait<0>();
    ptx::pin(o);
    release(sm.v_empty[key_at.before().slot]);
    if constexpr (config.mask == Mask::kWindow) pass_over(tiles.begin - work.keys.begin);
    FLASHBACK_MARK("store O");
    store_rows<config>(p, sm, q_at.slot, work, o, ends);
    release(sm.q_empty[q_at.slot]);
    q_at.advance();
  }
  turns.end();
}

// --- the kernel

template <Config config>
__device__ void initialise_barriers(SharedMemory<config>& sm) {
  constexpr int kComputeWarps = config.groups() * kGroupWarps;
  ptx::initialise(sm.work_full, 1);
  ptx::initialise(sm.work_empty, kComputeWarps);
  ptx::initialise(sm.q_full, 1);
  ptx::initialise(sm.q_empty, kComputeWarps);
  ptx::initialise(sm.k_full, 1);
  ptx::initialise(sm.k_empty, kComputeWarps);
  ptx::initialise(sm.v_full, 1);
  ptx::initialise(sm.v_empty, kComputeWarps);
  ptx::fence_initialised_barriers();
}

template <Config config>
__device__ void forward(const Parameters& p) {
  auto& sm = shared::dynamic_shared_memory<SharedMemory<config>>();
  const int warp = shared::this_warp();
  if (threadIdx.x == 0) initialise_barriers<config>(sm);
  __syncthreads();

  if (role_of(warp) == Role::kCompute) {
    ptx::raise_registers<config.compute_registers()>();
    compute<config>(p, ptx::in_register(sm));
  } else {
    ptx::lower_registers<config.service_registers()>();
    if (threadIdx.x == 0) {
      common::load_items<kKeyRows>(
          p, sm, [](const Parameters& p, int ticket, Work& work) { find_work<config>(p, ticket, work); });
    }
  }
}

}  // namespace flashback::sm90::forward
