// Attention gradients on sm_100a, head dim 64: the roles in the order of the data, then the kernel.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/sm100/backward/block.cuh"
#include "kernels/sm100/backward/config.h"
#include "kernels/tile/product.cuh"
#include "kernels/tile/ring.h"

namespace flashback::sm100::backward {

using tile::RingPosition;

// A CTA's share: a tile of keys of one head, and the query tiles that see it.
struct Work {
  int key_row, head, batch;
  shared::TileRange tiles;

  __device__ ptx::Coordinates rows(int row, int d = 0) const { return {d, row, head, batch}; }
  // Of this head's first row in the padded arrays.
  __device__ std::int64_t padded_row(const Parameters& p) const {
    return (static_cast<std::int64_t>(batch) * p.heads + head) * p.q_rows_padded;
  }
};

// --- load: one thread --------------------------------------------------------------------------

__device__ inline void load(const Parameters& p, SharedMemory& sm, const Work& work) {
  ptx::prefetch_tensor_map(&p.q);
  ptx::prefetch_tensor_map(&p.k);
  ptx::prefetch_tensor_map(&p.v);
  ptx::prefetch_tensor_map(&p.dout);
  const float* lse_log2 = p.lse_log2 + work.padded_row(p);
  const float* delta_rows = p.delta + work.padded_row(p);
  RingPosition<kQStages> q;
  RingPosition<kLseStages> lse;
  RingPosition<kDoutStages> dout;
  RingPosition<kDeltaStages> delta;
#pragma unroll 1
  for (int t = work.tiles.begin; t < work.tiles.end; ++t) {
    const bool first = t == work.tiles.begin;
    const int row = t * kQueryRows;

    FLASHBACK_MARK("Q");
    wait(sm.q_empty[q.slot], q.empty());
    arrive_and_expect(sm.q_full[q.slot], first ? 2 * kTileBytes : kTileBytes);
    if (first) load_tensor(&sm.k, &p.k, work.rows(work.key_row), sm.q_full[q.slot]);
    load_tensor(&sm.q[q.slot], &p.q, work.rows(row), sm.q_full[q.slot]);

    FLASHBACK_MARK("lse");
    wait(sm.lse_empty[lse.slot], lse.empty());
    arrive_and_expect(sm.lse_full[lse.slot], kRowsBytes);
    load_bulk(sm.lse[lse.slot], lse_log2 + row, kRowsBytes, sm.lse_full[lse.slot]);

    FLASHBACK_MARK("dO");
    wait(sm.dout_empty[dout.slot], dout.empty());
    arrive_and_expect(sm.dout_full[dout.slot], first ? 2 * kTileBytes : kTileBytes);
    if (first) load_tensor(&sm.v, &p.v, work.rows(work.key_row), sm.dout_full[dout.slot]);
    load_tensor(&sm.dout[dout.slot], &p.dout, work.rows(row), sm.dout_full[dout.slot]);

    FLASHBACK_MARK("delta");
    wait(sm.delta_empty[delta.slot], delta.empty());
    arrive_and_expect(sm.delta_full[delta.slot], kRowsBytes);
    load_bulk(sm.delta[delta.slot], delta_rows + row, kRowsBytes, sm.delta_full[delta.slot]);

    q.advance();
    lse.advance();
    dout.advance();
    delta.advance();
  }
}

// --- multiply: one thread ----------------------------------------------------------------------

template <Config config>
__device__ void multiply(SharedMemory& sm, std::uint32_t tensor_memory, int tiles) {
  constexpr bool kSplit = config.tensor_memory == TensorMemory::kSplit;
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory);
  constexpr Dtype kDtype = config.dtype;
  const auto at = [=](tile::Columns columns) { return tensor_memory + columns.first; };
  const tile::TensorOperand<kQueryRows> p_operand{at(kColumns.p)}, ds_operand{at(kColumns.ds)};

  // Each product has its own place in the rings: S and dP run ahead of dV, dK and dQ.
  RingPosition<kQStages> s_q, dk_q;
  RingPosition<kDoutStages> dp_dout, dv_dout;
  RingPosition<1> s, dp, dv, dk;

  const auto issue_s = [&] {
    FLASHBACK_MARK("S");
    wait(sm.q_full[s_q.slot], s_q.full());
    if constexpr (kSplit) {
      wait(sm.s_empty, s.empty());
      ptx::fence_after_sync();
    }
    tile::multiply<kDtype>(at(kColumns.s), tile::along_rows(sm.k), tile::along_rows(sm.q[s_q.slot]), false);
    commit(sm.s_full);
    s_q.advance();
    s.advance();
  };
  const auto issue_dp = [&] {
    FLASHBACK_MARK("dP");
    wait(sm.dout_full[dp_dout.slot], dp_dout.full());
    wait(sm.dq_empty, dp.empty());  // dQ of the tile before lies here
    ptx::fence_after_sync();
    tile::multiply<kDtype>(at(kColumns.dp), tile::along_rows(sm.v), tile::along_rows(sm.dout[dp_dout.slot]),
                           false);
    commit(sm.dp_full);
    dp_dout.advance();
    dp.advance();
  };
  const auto issue_dv = [&](int t) {
    FLASHBACK_MARK("dV");
    wait(sm.p_full, dv.full());
    ptx::fence_after_sync();
    tile::multiply<kDtype>(at(kColumns.dv), p_operand, tile::down_columns(sm.dout[dv_dout.slot]), t > 0);
    if constexpr (kSplit) commit(sm.p_empty);
    commit(t + 1 < tiles ? sm.dout_empty[dv_dout.slot] : sm.dv_full);
    dv_dout.advance();
    dv.advance();
  };
  const auto issue_dk_and_dq = [&](int t) {
    FLASHBACK_MARK("dK");
    wait(sm.ds_full, dk.full());
    ptx::fence_after_sync();
    tile::multiply<kDtype>(at(kColumns.dk), ds_operand, tile::down_columns(sm.q[dk_q.slot]), t > 0);
    commit(t + 1 < tiles ? sm.q_empty[dk_q.slot] : sm.dk_full);
    FLASHBACK_MARK("dQ");
    tile::multiply<kDtype>(at(kColumns.dq), tile::down_columns(sm.ds), tile::down_columns(sm.k), false);
    commit(sm.dq_full);
    dk_q.advance();
    dk.advance();
  };

  issue_s();
  issue_dp();
  if constexpr (!kSplit) issue_dv(0);
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    const bool more = t + 1 < tiles;
    if (more) issue_s();
    if constexpr (kSplit) issue_dv(t);
    issue_dk_and_dq(t);
    if (more) {
      issue_dp();
      if constexpr (!kSplit) issue_dv(t + 1);
    }
  }
}

// --- compute: eight warps, a key a thread ------------------------------------------------------

// Every compute warp has read what some other one is about to overwrite: P lies over S, dS over dP.
template <Config config>
__device__ void guard_alias() {
  if constexpr (config.tensor_memory == TensorMemory::kAliased) {
    ptx::fence_before_sync();
    ptx::sync<kComputeBarrier, kComputeThreads>();
    ptx::fence_after_sync();
  }
}

// Tells the waiters of the barriers that the warp's accesses so far are done; under Signal::kCta in step with
// the other compute warps. `leader` is one lane of the warp.
template <Config config, class... Barriers>
__device__ void announce(bool leader, Barriers&... barriers) {
  ptx::fence_before_sync();
  if constexpr (config.signal == Signal::kCta) {
    ptx::sync<kComputeBarrier, kComputeThreads>();
  } else {
    __syncwarp();
  }
  if (leader) (arrive(barriers), ...);
}

// Where a compute thread works. Its 64 query rows of a tile are two blocks of 32, one in each half.
struct ComputeThread {
  int group;            // 0, 1: which block of a half
  int key;              // in the tile: its lane of tensor memory
  std::uint32_t lanes;  // its warp's part of a tensor memory address

  __device__ explicit ComputeThread(int warp)
      : group((warp - kFirstComputeWarp) / 4),
        key(static_cast<int>(threadIdx.x) % kGroupThreads),
        lanes(tile::lanes_of(warp)) {}
  // First row in the tile of the block in `half`.
  __device__ int row(int half) const { return half * kQueryRows / 2 + group * kBlockColumns; }
};

template <Config config>
__device__ void compute(const Parameters& p, SharedMemory& sm, std::uint32_t tensor_memory, const Work& work,
                        const ComputeThread& thread, bool leader) {
  constexpr bool kSplit = config.tensor_memory == TensorMemory::kSplit;
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory);
  const auto at = [=](tile::Columns columns) { return tensor_memory + thread.lanes + columns.first; };

  const shared::Lengths lengths = {p.q_rows, p.k_rows};
  const int first_row = shared::first_row_that_sees(config.mask, work.key_row + thread.key, lengths);
  // From here on every row sees every key of the tile.
  const int first_whole_row = shared::first_row_that_sees(config.mask, work.key_row + kKeyRows - 1, lengths);
  const ptx::F32x2 minus_scale_log2 = ptx::pair(-p.scale_log2, -p.scale_log2);

  RingPosition<kLseStages> lse;
  RingPosition<kDeltaStages> delta;
  RingPosition<1> step;
#pragma unroll 1
  for (int t = work.tiles.begin; t < work.tiles.end; ++t) {
    const int row = t * kQueryRows;
    const bool edge = row < first_whole_row;

    float prob[2][kBlockColumns];
    FLASHBACK_MARK("load S");
    wait(sm.lse_full[lse.slot], lse.full());
    wait(sm.s_full, step.full());
    ptx::fence_after_sync();
    ptx::load_columns(prob[0], at(kColumns.s) + thread.row(0), prob[1], at(kColumns.s) + thread.row(1));
    if constexpr (kSplit) announce<config>(leader, sm.s_empty);
    FLASHBACK_MARK("softmax");

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      exponentiate(prob[half], minus_scale_log2, &sm.lse[lse.slot][thread.row(half)]);
      if (edge) hide(prob[half], shared::rows_that_see(first_row, row + thread.row(half)));
      std::uint32_t words[kBlockWords];
      narrow<config.dtype>(words, prob[half]);
      if (half == 0) {
        guard_alias<config>();
        if constexpr (kSplit) {
          wait(sm.p_empty, step.empty());
          ptx::fence_after_sync();
        }
      }
      ptx::store_columns(at(kColumns.p) + thread.row(half) / 2, words);
    }
    FLASHBACK_MARK("store P");
    ptx::wait_stores();
    announce<config>(leader, sm.p_full, sm.lse_empty[lse.slot]);

    FLASHBACK_MARK("load dP");
    wait(sm.delta_full[delta.slot], delta.full());
    wait(sm.dp_full, step.full());
    ptx::fence_after_sync();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float ds[kBlockColumns];
      ptx::load_columns(ds, at(kColumns.dp) + thread.row(half));
      guard_alias<config>();
      FLASHBACK_MARK("dS");
      differentiate(ds, prob[half], &sm.delta[delta.slot][thread.row(half)]);
      if (edge) hide(ds, shared::rows_that_see(first_row, row + thread.row(half)));
      std::uint32_t words[kBlockWords];
      narrow<config.dtype>(words, ds);
      ptx::store_columns(at(kColumns.ds) + thread.row(half) / 2, words);
      store_block(
          words, [&](int i) { return KeyTile::chunk(thread.key, kBlockChunks * thread.group + i); },
          &sm.ds[half]);
    }
    FLASHBACK_MARK("store dS");
    ptx::wait_stores();
    ptx::fence_async_shared();
    announce<config>(leader, sm.ds_full, sm.delta_empty[delta.slot]);

    lse.advance();
    delta.advance();
    step.advance();
  }
}

// A finished dK or dV: 32 columns a compute group, scaled, narrowed, staged in shared memory that no product
// reads any more, stored by tensor map (which leaves out rows past the last key).
template <Dtype dtype>
__device__ void store_gradient(ptx::Barrier& full, std::uint32_t columns, float scale, KeyTile& staging,
                               const TensorMapBytes& map, const Work& work, const ComputeThread& thread,
                               bool issuer) {
  FLASHBACK_MARK("store gradient");
  wait(full, 0);
  ptx::fence_after_sync();
  const int d = thread.group * kBlockColumns;
  float v[kBlockColumns];
  ptx::load_columns(v, columns + thread.lanes + d);
#pragma unroll
  for (float& x : v) x *= scale;
  std::uint32_t words[kBlockWords];
  narrow<dtype>(words, v);

  void* const staged = staging.bytes + thread.group * kStagedBytes;
  store_block(
      words, [&](int i) { return staged_chunk(thread.key, i); }, staged);
  ptx::fence_async_shared();
  ptx::sync<kGroupThreads>(kGroupBarrier + thread.group);
  if (issuer) {
    ptx::store_tensor(&map, work.rows(work.key_row, d), staged);
    ptx::commit_bulk_group();
  }
  __syncwarp();
}

template <Config config>
__device__ void compute_and_store(const Parameters& p, SharedMemory& sm, std::uint32_t tensor_memory,
                                  const Work& work, int warp) {
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory);
  const ComputeThread thread(warp);
  const bool leader = ptx::elect();
  compute<config>(p, sm, tensor_memory, work, thread, leader);
  const bool issuer = leader && warp % 4 == 0;
  store_gradient<config.dtype>(sm.dv_full, tensor_memory + kColumns.dv.first, 1.0f, sm.dout[0], p.dv, work,
                               thread, issuer);
  store_gradient<config.dtype>(sm.dk_full, tensor_memory + kColumns.dk.first, p.scale, sm.q[0], p.dk, work,
                               thread, issuer);
  if (issuer) ptx::wait_bulk();
}

// --- reduce: four warps, a query row a thread --------------------------------------------------

template <Config config>
__device__ void reduce(const Parameters& p, SharedMemory& sm, std::uint32_t tensor_memory, const Work& work,
                       int warp) {
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory);
  const std::uint32_t from = tensor_memory + tile::lanes_of(warp) + kColumns.dq.first;
  const int row = static_cast<int>(threadIdx.x);
  float* const dq_accum = p.dq_accum + work.padded_row(p) * kHeadDim;
  const bool leader = ptx::elect();
  const bool issuer = leader && warp == 0;

  RingPosition<1> step;
  RingPosition<kDqStages> staging;
#pragma unroll 1
  for (int t = work.tiles.begin; t < work.tiles.end; ++t) {
    float dq[2][kBlockColumns];
    FLASHBACK_MARK("load dQ");
    wait(sm.dq_full, step.full());
    ptx::fence_after_sync();
    ptx::load_columns(dq[0], from, dq[1], from + kBlockColumns);
    ptx::fence_before_sync();
    __syncwarp();
    if (leader) arrive(sm.dq_empty);

#pragma unroll
    for (int block = 0; block < 2; ++block) {
      float* const staged = sm.dq[staging.slot];
      FLASHBACK_MARK("add dQ");
      if (issuer) ptx::wait_bulk_read<kDqStages - 1>();
      ptx::sync<kReduceBarrier, kReduceThreads>();
      const std::uint32_t to = ptx::shared_address(staged);
#pragma unroll
      for (int d = 0; d < kBlockColumns; d += 4) {
        const float* v = &dq[block][d];
        ptx::store_shared(to + shared::dq_offset(row, d) * sizeof(float), v[0], v[1], v[2], v[3]);
      }
      ptx::fence_async_shared();
      ptx::sync<kReduceBarrier, kReduceThreads>();
      if (issuer) {
        ptx::add_bulk(dq_accum + static_cast<std::int64_t>(t) * kQueryRows * kHeadDim +
                          shared::dq_offset(0, block * kBlockColumns),
                      staged, kDqBlockBytes);
        ptx::commit_bulk_group();
      }
      __syncwarp();
      staging.advance();
    }
    step.advance();
  }
  if (issuer) ptx::wait_bulk();
}

// --- the kernel --------------------------------------------------------------------------------

template <Config config>
__device__ void initialise_barriers(SharedMemory& sm) {
  initialise(sm.q_full, 1);
  initialise(sm.q_empty, 1);
  initialise(sm.lse_full, 1);
  initialise(sm.lse_empty, kComputeWarps);
  initialise(sm.dout_full, 1);
  initialise(sm.dout_empty, 1);
  initialise(sm.delta_full, 1);
  initialise(sm.delta_empty, kComputeWarps);
  if constexpr (config.tensor_memory == TensorMemory::kSplit) {
    initialise(sm.s_empty, kComputeWarps);
    initialise(sm.p_empty, 1);
  }
  initialise(sm.s_full, 1);
  initialise(sm.p_full, kComputeWarps);
  initialise(sm.dp_full, 1);
  initialise(sm.ds_full, kComputeWarps);
  initialise(sm.dq_full, 1);
  initialise(sm.dq_empty, kReduceWarps);
  initialise(sm.dv_full, 1);
  initialise(sm.dk_full, 1);
  ptx::fence_initialised_barriers();
}

template <Config config>
__device__ void backward(const Parameters& p) {
  static_assert(config.head_dim == kHeadDim);
  constexpr Registers kRegisters = registers(config.mask);
  extern __shared__ SharedMemory dynamic_shared[];
  SharedMemory& sm = dynamic_shared[0];
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  const Role role = role_of(warp);

  if (threadIdx.x == 0) initialise_barriers<config>(sm);
  if (role == Role::kMultiply) {
    ptx::allocate_tensor_memory<tile::kTensorMemoryColumns>(sm.tensor_memory);
    ptx::relinquish_tensor_memory();
    ptx::fence_before_sync();
  }
  __syncthreads();
  ptx::fence_after_sync();
  const std::uint32_t tensor_memory = sm.tensor_memory;
  const int key_row = static_cast<int>(blockIdx.x) * kKeyRows;
  const Work work = {key_row, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z),
                     shared::query_tiles(config.mask, key_row, {p.q_rows, p.k_rows}, kQueryRows)};

  if (role == Role::kReduce) {
    ptx::raise_registers<kRegisters.reduce>();
    reduce<config>(p, sm, tensor_memory, work, warp);
  } else if (role == Role::kCompute) {
    ptx::raise_registers<kRegisters.compute>();
    compute_and_store<config>(p, sm, tensor_memory, work, warp);
  } else {
    ptx::lower_registers<kRegisters.others>();
    if (role == Role::kMultiply) {
      if (ptx::elect()) multiply<config>(sm, tensor_memory, work.tiles.end - work.tiles.begin);
    } else if (role == Role::kLoad) {
      if (ptx::elect()) load(p, sm, work);
    }
  }
  __syncwarp();

  ptx::fence_before_sync();
  __syncthreads();
  if (role == Role::kMultiply) {
    ptx::fence_after_sync();
    ptx::free_tensor_memory<tile::kTensorMemoryColumns>(tensor_memory);
  }
}

}  // namespace flashback::sm100::backward
