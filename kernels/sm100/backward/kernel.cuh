// Attention gradients on sm_100a: the roles in the order of the data, then the kernel.
#pragma once

#include "kernels/ptx/bulk.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/shared/entry.cuh"
#include "kernels/sm100/backward/block.cuh"
#include "kernels/sm100/backward/config.h"
#include "kernels/sm100/backward/store.cuh"
#include "kernels/sm100/backward/work.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/ring.h"
#include "kernels/tile/tensor_memory.cuh"

namespace flashback::sm100::backward {

using tile::RingPosition;

// --- load: one thread --------------------------------------------------------------------------

template <Config config>
__device__ void load(const Parameters& p, SharedMemory<config.head_dim>& sm, const Work& work) {
  constexpr int kSlabs = slabs(config.head_dim);
  constexpr std::uint32_t kTileBytes = kSlabs * kSlabBytes;
  const auto load_queries = [&](QueryTile(&to)[kSlabs], const TensorMapBytes& map, int row,
                                ptx::Barrier& full) {
#pragma unroll
    for (int i = 0; i < kSlabs; ++i)
      load_tensor(&to[i], &map, at_query(p, work, row, i * tile::kRowElements), full);
  };
  const auto load_keys = [&](KeyTile(&to)[kSlabs], const TensorMapBytes& map, ptx::Barrier& full) {
#pragma unroll
    for (int i = 0; i < kSlabs; ++i)
      load_tensor(&to[i], &map, at_keys(p, work, i * tile::kRowElements), full);
  };
  ptx::prefetch_tensor_map(&p.q);
  ptx::prefetch_tensor_map(&p.k);
  ptx::prefetch_tensor_map(&p.v);
  ptx::prefetch_tensor_map(&p.dout);
  const std::int64_t first_row = work.first_query_tile * kQueryRows;
  const float* lse_log2 = p.lse_log2 + first_row;
  const float* delta_rows = p.delta + first_row;
  const shared::TileRange tiles = work.tiles;
  RingPosition<kQStages> q;
  RingPosition<kLseStages> lse;
  RingPosition<kDoutStages> dout;
  RingPosition<kDeltaStages> delta;
#pragma unroll 1
  for (int t = tiles.begin; t < tiles.end; ++t) {
    const bool first = t == tiles.begin;
    const int row = t * kQueryRows;

    FLASHBACK_MARK("Q");
    wait(sm.q_empty[q.slot], q.empty());
    arrive_and_expect(sm.q_full[q.slot], first ? 2 * kTileBytes : kTileBytes);
    if (first) load_keys(sm.k, p.k, sm.q_full[q.slot]);
    load_queries(sm.q[q.slot], p.q, row, sm.q_full[q.slot]);

    FLASHBACK_MARK("lse");
    wait(sm.lse_empty[lse.slot], lse.empty());
    arrive_and_expect(sm.lse_full[lse.slot], kRowsBytes);
    load_bulk(sm.lse[lse.slot], lse_log2 + row, kRowsBytes, sm.lse_full[lse.slot]);

    FLASHBACK_MARK("dO");
    wait(sm.dout_empty[dout.slot], dout.empty());
    arrive_and_expect(sm.dout_full[dout.slot], first ? 2 * kTileBytes : kTileBytes);
    if (first) load_keys(sm.v, p.v, sm.dout_full[dout.slot]);
    load_queries(sm.dout[dout.slot], p.dout, row, sm.dout_full[dout.slot]);

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
__device__ void multiply(SharedMemory<config.head_dim>& sm, std::uint32_t tensor_memory, int tiles) {
  constexpr bool kSplit = config.tensor_memory == TensorMemory::kSplit;
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory, config.head_dim);
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
    tile::multiply_along<kDtype>(at(kColumns.s), sm.k, sm.q[s_q.slot]);
    commit(sm.s_full);
    s_q.advance();
    s.advance();
  };
  const auto issue_dp = [&] {
    FLASHBACK_MARK("dP");
    wait(sm.dout_full[dp_dout.slot], dp_dout.full());
    wait(sm.dq_empty, dp.empty());  // dQ of the tile before lies here
    ptx::fence_after_sync();
    tile::multiply_along<kDtype>(at(kColumns.dp), sm.v, sm.dout[dp_dout.slot]);
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

template <Config config>
__device__ void compute(const Parameters& p, SharedMemory<config.head_dim>& sm, std::uint32_t tensor_memory,
                        const Work& work, const ComputeThread& thread, bool leader) {
  constexpr bool kSplit = config.tensor_memory == TensorMemory::kSplit;
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory, config.head_dim);
  const auto at = [=](tile::Columns columns) { return tensor_memory + thread.lanes + columns.first; };

  constexpr bool kWindow = config.mask == Mask::kWindow;
  const auto first = [&](int key) { return shared::first_row_that_sees(config.mask, key, work.lengths); };
  const auto last = [&](int key) { return shared::last_row_that_sees(config.mask, key, work.lengths); };
  const int key_row = work.key_tile * kKeyRows;
  const int first_row = first(key_row + thread.key), last_row = last(key_row + thread.key);
  // From and up to here every row sees every key of the tile.
  const int first_whole_row = first(key_row + kKeyRows - 1), last_whole_row = last(key_row);
  // Rows of a block that see the thread's key.
  const auto visible = [&](int row) {
    const std::uint32_t rows = shared::rows_that_see(first_row, row);
    return kWindow ? rows & shared::rows_up_to(last_row, row) : rows;
  };
  const ptx::F32x2 minus_scale_log2 = ptx::pair(-p.scale_log2, -p.scale_log2);
  const shared::TileRange tiles = work.tiles;

  RingPosition<kLseStages> lse;
  RingPosition<kDeltaStages> delta;
  RingPosition<1> step;
#pragma unroll 1
  for (int t = tiles.begin; t < tiles.end; ++t) {
    const int row = t * kQueryRows;
    const bool edge = row < first_whole_row || (kWindow && row + kQueryRows - 1 > last_whole_row);

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
      if (edge) hide(prob[half], visible(row + thread.row(half)));
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
      if (edge) hide(ds, visible(row + thread.row(half)));
      std::uint32_t words[kBlockWords];
      narrow<config.dtype>(words, ds);
      ptx::store_columns(at(kColumns.ds) + thread.row(half) / 2, words);
      store_block(
          words, [&](int i) { return KeyTile::chunk(thread.key, kBlockChunks * thread.group + i); },
          ptx::shared_address(&sm.ds[half]));
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

template <Config config>
__device__ void compute_and_store(const Parameters& p, SharedMemory<config.head_dim>& sm,
                                  std::uint32_t tensor_memory, const Work& work, int warp) {
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory, config.head_dim);
  const ComputeThread thread(warp);
  const bool leader = ptx::elect();
  compute<config>(p, sm, tensor_memory, work, thread, leader);
  const bool issuer = leader && warp % 4 == 0;
  // Of the slabs that are staged in: dO and, read when dV is final, V; both stages of Q.
  const std::uint32_t dv_staging = ptx::shared_address(sm.v), dk_staging = ptx::shared_address(sm.q);
  static_assert(offsetof(SharedMemory<config.head_dim>, dout) ==
                offsetof(SharedMemory<config.head_dim>, v) + sizeof sm.v);
  store_gradient<config>(
      p, {sm.dv_full, tensor_memory + kColumns.dv.first, 1.0f, &p.dv, p.dv_accum, dv_staging, 0}, work,
      thread, issuer);
  store_gradient<config>(
      p, {sm.dk_full, tensor_memory + kColumns.dk.first, p.scale, &p.dk, p.dk_accum, dk_staging, 2}, work,
      thread, issuer);
  if (issuer) ptx::wait_bulk();
}

// --- reduce: four warps, a query row a thread --------------------------------------------------

template <Config config>
__device__ void reduce(const Parameters& p, SharedMemory<config.head_dim>& sm, std::uint32_t tensor_memory,
                       const Work& work, int warp) {
  constexpr TensorColumns kColumns = tensor_columns(config.tensor_memory, config.head_dim);
  constexpr int kSlabs = slabs(config.head_dim);
  const std::uint32_t from = tensor_memory + tile::lanes_of(warp) + kColumns.dq.first;
  const int row = static_cast<int>(threadIdx.x);
  const bool leader = ptx::elect();
  const bool issuer = leader && warp == 0;
  const std::int64_t first_tile = work.first_query_tile;
  const shared::TileRange tiles = work.tiles;

  RingPosition<1> step;
  RingPosition<kDqStages> staging;
#pragma unroll 1
  for (int t = tiles.begin; t < tiles.end; ++t) {
    const std::int64_t tile = first_tile + t;
    float* const dq_accum = p.dq_accum + tile * kQueryRows * config.head_dim;
    FLASHBACK_MARK("load dQ");
    wait(sm.dq_full, step.full());
    ptx::fence_after_sync();
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      float dq[2][kBlockColumns];
      const std::uint32_t columns = from + slab * tile::kRowElements;
      ptx::load_columns(dq[0], columns, dq[1], columns + kBlockColumns);
      if (slab == kSlabs - 1) {
        ptx::fence_before_sync();
        __syncwarp();
        if (leader) arrive(sm.dq_empty);
      }

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
          const int first = slab * 2 + block, d = first * kBlockColumns;
          if (first == 0 && p.dq_turns) {
            shared::wait_turn(p.dq_turns + tile, shared::turn_of(config.mask, work.key_tile, t, work.lengths,
                                                                 kQueryRows, kKeyRows));
          }
          ptx::add_bulk(dq_accum + shared::dq_offset(0, d), staged, kDqBlockBytes);
          ptx::commit_bulk_group();
          if (d + kBlockColumns == config.head_dim && p.dq_turns) shared::pass_turn(p.dq_turns + tile);
        }
        __syncwarp();
        staging.advance();
      }
    }
    step.advance();
  }
  if (issuer) ptx::wait_bulk();
}

// --- the kernel --------------------------------------------------------------------------------

template <Config config>
__device__ void initialise_barriers(SharedMemory<config.head_dim>& sm) {
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
  static_assert(config.head_dim == 64 || config.tensor_memory == TensorMemory::kAliased);
  constexpr Registers kRegisters = registers(config.mask);
  auto& sm = shared::dynamic_shared_memory<SharedMemory<config.head_dim>>();
  const int warp = shared::this_warp();
  const Role role = role_of(warp);

  if (threadIdx.x == 0) {
    initialise_barriers<config>(sm);
    sm.work = take_work<config.mask>(p);
  }
  const std::uint32_t tensor_memory = tile::take_tensor_memory(role == Role::kMultiply, sm);
  const Work& work = sm.work;

  if (work.batch < 0) {
    // There are fewer tiles than CTAs.
  } else if (role == Role::kReduce) {
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
      if (ptx::elect()) load<config>(p, sm, work);
    }
  }
  tile::return_tensor_memory(role == Role::kMultiply, tensor_memory);
}

}  // namespace flashback::sm100::backward
