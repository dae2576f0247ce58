// Attention on sm_100a: the roles in the order of the data, then the kernel.
#pragma once

#include <type_traits>

#include "kernels/common/load_items.cuh"
#include "kernels/common/row_end.cuh"
#include "kernels/ptx/mark.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tcgen05.cuh"
#include "kernels/shared/entry.cuh"
#include "kernels/shared/work_reader.cuh"
#include "kernels/sm100/forward/softmax.cuh"
#include "kernels/sm100/forward/work.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/ring.h"
#include "kernels/tile/tensor_memory.cuh"

namespace flashback::sm100::forward {

using tile::RingPosition;

// A place in a ring of one buffer for each half, by halves.
struct HalfPositions {
  std::uint32_t parities = 0;

  // As those of a RingPosition.
  __device__ std::uint32_t full(int half) const { return parities >> half & 1; }
  __device__ std::uint32_t empty(int half) const { return full(half) ^ 1; }
  __device__ void advance(int half) { parities ^= 1u << half; }
};

// --- multiply: one thread ----------------------------------------------------------------------

template <Config config>
struct Products {
  SharedMemory<config>& sm;
  const std::uint32_t tensor_memory;
  RingPosition<config.query_stages()> q = {};
  RingPosition<config.key_stages()> k = {}, v = {};
  HalfPositions s = {}, o = {};

  // S = Q K^T
  __device__ void scores(int half) {
    constexpr TensorColumns kColumns = tensor_columns(config.head_dim);
    if constexpr (config.p_apart()) {
      wait(sm.s_empty[half], s.empty(half));
      ptx::fence_after_sync();
    }
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
      tile::multiply<config.dtype>(tensor_memory + first_column(kColumns.s, half),
                                   tile::along_rows(sm.q[q.slot][slab][half]),
                                   tile::along_rows(sm.k[k.slot][slab]), slab > 0);
    }
    commit(sm.s_full[half]);
    s.advance(half);
  }

  // O += P V, or = for the first tile of an item
  __device__ void values(int half, bool accumulate) {
    constexpr TensorColumns kColumns = tensor_columns(config.head_dim);
    wait(sm.o_ready[half], o.empty(half));
    wait(sm.p_full[half], o.full(half));
    ptx::fence_after_sync();
    tile::multiply<config.dtype>(
        tensor_memory + first_column(kColumns.o, half),
        tile::TensorOperand<kKeyRows>{tensor_memory + first_column(kColumns.p, half)},
        tile::down_columns(sm.v[v.slot]), accumulate);
    commit(sm.o_full[half]);
    o.advance(half);
  }

  // S runs `lead` tiles ahead of P V. Issued after the P V that reads a P over it, S does not overtake it:
  // the tensor core keeps the order of issue.
  __device__ void item(const Work& work) {
    constexpr int kLead = config.lead();
    const shared::KeyTiles(&keys)[kHalves] = work.keys;
    const int begin = work.begin, end = work.end;
    wait(sm.q_full[q.slot], q.full());
#pragma unroll 1
    for (int of_v = end - 1 + kLead; of_v >= begin; --of_v) {
      const int of_k = of_v - kLead;
      if (of_k >= begin) wait(sm.k_full[k.slot], k.full());
      if (of_v < end) wait(sm.v_full[v.slot], v.full());
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        FLASHBACK_MARK("P V");
        if (keys[half].holds(of_v)) values(half, of_v != keys[half].end - 1);
        FLASHBACK_MARK("S");
        if (keys[half].holds(of_k)) scores(half);
      }
      if (of_k >= begin) {
        commit(sm.k_empty[k.slot]);
        k.advance();
      }
      if (of_k == begin) commit(sm.q_empty[q.slot]);
      if (of_v < end) {
        commit(sm.v_empty[v.slot]);
        v.advance();
      }
    }
    q.advance();
  }
};

template <Config config>
__device__ void multiply(SharedMemory<config>& sm, std::uint32_t tensor_memory) {
  const bool leader = ptx::elect();
  shared::WorkReader<SharedMemory<config>> reader(sm);
  Products<config> products{sm, tensor_memory};
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    if (leader) products.item(work);
  }
  if (leader) {
    commit(sm.done);
    wait(sm.done, 0);
  }
}

// --- softmax: two groups of four warps, a query a thread -----------------------------------------

// One arrival of the warp, whose accesses so far are done. `leader` is one of its lanes.
__device__ inline void tell(bool leader, ptx::Barrier& barrier) {
  __syncwarp();
  if (leader) arrive(barrier);
}
// The same where they were to tensor memory.
__device__ inline void tell_columns(bool leader, ptx::Barrier& barrier) {
  ptx::fence_before_sync();
  tell(leader, barrier);
}

template <Config config>
__device__ void softmax(const Parameters& p, SharedMemory<config>& sm, std::uint32_t tensor_memory,
                        int warp) {
  constexpr TensorColumns kColumns = tensor_columns(config.head_dim);
  const int half = warp / kGroupWarps, query = static_cast<int>(threadIdx.x) % kHalfRows;
  const bool leader = query % 32 == 0;
  const std::uint32_t lanes = tensor_memory + tile::lanes_of(warp);
  const std::uint32_t s_at = lanes + first_column(kColumns.s, half),
                      p_at = lanes + first_column(kColumns.p, half);
  const ptx::F32x2 scale_log2 = ptx::pair(p.scale_log2, p.scale_log2);
  shared::WorkReader<SharedMemory<config>> reader(sm);
  RingPosition<1> step, stats;
  const auto send = [&](float factor, const Softmax& softmax) {
    wait(sm.stats_empty[half], stats.empty());
    sm.factor[half][query] = factor;
    sm.m[half][query] = -softmax.minus_m;
    tell(leader, sm.stats_full[half]);
    stats.advance();
  };

  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    const shared::KeyTiles& keys = work.keys[half];  // read again for each tile: registers are scarce
    if (keys.count() == 0) continue;
    Softmax softmax;
#pragma unroll 1
    for (int t = keys.end - 1; t >= keys.begin; --t) {
      Scores s;
      FLASHBACK_MARK("load S");
      wait(sm.s_full[half], step.full());
      ptx::fence_after_sync();
      ptx::load_columns(s, s_at);
      if constexpr (config.p_apart()) tell_columns(leader, sm.s_empty[half]);
      FLASHBACK_MARK("softmax");
      if (p.negate_q) negate(s);
      const bool partly = keys.partly_seen(t);
      if (partly) {
        const shared::KeyRange seen =
            shared::keys_seen(work.band, work.row + half * kHalfRows + query, work.sight.k.count);
#pragma unroll
        for (int b = 0; b < kBlocks; ++b)
          hide(s[b], keys_visible<config.mask>(seen, t * kKeyRows + b * kBlockKeys));
      }
      const float factor = raise(softmax, s, p.scale_log2);
      if (t != keys.end - 1) send(factor, softmax);

      const auto weigh_and_store = [&](auto whole) {
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          weigh<whole>(s[b], softmax, scale_log2);
          std::uint32_t words[kBlockKeys / 2];
          narrow<config.dtype>(words, s[b]);
          if (config.p_apart() && b == 0) {
            wait(sm.o_full[half], step.empty());
            ptx::fence_after_sync();
          }
          ptx::store_columns(p_at + b * (kBlockKeys / 2), words);
        }
      };
      if (partly) {
        weigh_and_store(std::false_type());
      } else {
        weigh_and_store(std::true_type());
      }
      FLASHBACK_MARK("store P");
      ptx::wait_stores();
      tell_columns(leader, sm.p_full[half]);
      step.advance();
    }
    send(softmax.sum(), softmax);
  }
}

// --- correct: four warps, a query of either half a thread ----------------------------------------

template <Config config>
struct Correction {
  static constexpr int kBlockColumns = 32;

  const Parameters& p;
  SharedMemory<config>& sm;
  const std::uint32_t lanes;  // of tensor memory
  const bool leader;
  const int query;                       // of a half
  HalfPositions stats = {}, added = {};  // `added`: products that O has seen

  struct Stats {
    float factor, m;
  };
  __device__ Stats receive(int half) {
    wait(sm.stats_full[half], stats.full(half));
    const Stats received = {sm.factor[half][query], sm.m[half][query]};
    tell(leader, sm.stats_empty[half]);
    stats.advance(half);
    return received;
  }

  // Of the half's O, from channel d on.
  __device__ std::uint32_t o_at(int half, int d) const {
    constexpr TensorColumns kColumns = tensor_columns(config.head_dim);
    return lanes + first_column(kColumns.o, half) + d;
  }

  // The product before is done.
  __device__ void wait_added(int half) {
    wait(sm.o_full[half], added.empty(half));
    ptx::fence_after_sync();
  }

  // Before a product that adds to O. The one before is waited for in any case: else O would be declared ready
  // twice before the multiply warp has asked once.
  __device__ void rescale(int half) {
    FLASHBACK_MARK("rescale O");
    const float factor = receive(half).factor;
    wait_added(half);
    if (__any_sync(0xffffffff, factor != 1)) {
#pragma unroll
      for (int d = 0; d < config.head_dim; d += kBlockColumns) {
        float o[kBlockColumns];
        ptx::load_columns(o, o_at(half, d));
#pragma unroll
        for (float& x : o) x *= factor;
        ptx::store_columns(o_at(half, d), o);
      }
      ptx::wait_stores();
    }
    tell_columns(leader, sm.o_ready[half]);
  }

  // After the last product: O and lse to global memory, O through the warp's own rows of shared memory, so
  // that whole rows leave.
  __device__ void finish(const Work& work, int half) {
    FLASHBACK_MARK("store O");
    const auto [sum, m] = receive(half);
    const common::RowEnd end(p, work.head, sum, m);
    const int first = query / 32 * 32, row = half * kHalfRows + query;
    const int rows = work.sight.q.count - work.row;  // from the item's first one on
    const common::Destination to = common::destination_of(p, work);
    if (to.lse && row < rows) to.lse[row] = end.lse;
    wait_added(half);
    const std::uint32_t staging = ptx::shared_address(&sm.o);
#pragma unroll
    for (int slab = 0; slab < config.slabs(); ++slab) {
#pragma unroll
      for (int block = 0; block < tile::kRowElements / kBlockColumns; ++block) {
        const int d = slab * tile::kRowElements + block * kBlockColumns;
        float o[kBlockColumns];
        ptx::load_columns(o, o_at(half, d));
        if (d + kBlockColumns == config.head_dim) tell_columns(leader, sm.o_ready[half]);
#pragma unroll
        for (int i = 0; i < kBlockColumns; i += 8) {  // a chunk
          std::uint32_t words[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float* const x = &o[i + 2 * j];
            words[j] = shared::narrow<config.dtype>(end.scale * x[0], end.scale * x[1]);
          }
          ptx::store_shared(staging + Slab::chunk(query, (block * kBlockColumns + i) / 8), words[0], words[1],
                            words[2], words[3]);
        }
      }
      __syncwarp();
      common::store_whole_rows<32>(p, to.out, staging + first * tile::kRowBytes, half * kHalfRows + first,
                                   rows, slab, query % 32);
      __syncwarp();
    }
  }

  __device__ void item(const Work& work) {
    const int begin = work.begin;
#pragma unroll 1
    for (int t = work.end - 1; t >= begin; --t) {
#pragma unroll 1
      for (int half = 0; half < kHalves; ++half) {
        if (!work.keys[half].holds(t)) continue;
        if (t != work.keys[half].end - 1) rescale(half);
        added.advance(half);
      }
    }
#pragma unroll 1
    for (int half = 0; half < kHalves; ++half) {
      if (work.keys[half].count() > 0) finish(work, half);
    }
  }
};

template <Config config>
__device__ void correct(const Parameters& p, SharedMemory<config>& sm, std::uint32_t tensor_memory,
                        int warp) {
  shared::WorkReader<SharedMemory<config>> reader(sm);
  Correction<config> correction{p, sm, tensor_memory + tile::lanes_of(warp), ptx::elect(),
                                static_cast<int>(threadIdx.x) % kHalfRows};
  for (;;) {
    const Work& work = reader.next();
    if (work.batch < 0) break;
    correction.item(work);
  }
}

// --- the kernel --------------------------------------------------------------------------------

template <Config config>
__device__ void initialise_barriers(SharedMemory<config>& sm) {
  initialise(sm.work_full, 1);
  initialise(sm.work_empty, kFirstCorrectWarp + kGroupWarps + 1);
  initialise(sm.q_full, 1);
  initialise(sm.q_empty, 1);
  initialise(sm.k_full, 1);
  initialise(sm.k_empty, 1);
  initialise(sm.v_full, 1);
  initialise(sm.v_empty, 1);
  initialise(sm.s_full, 1);
  if constexpr (config.p_apart()) initialise(sm.s_empty, kGroupWarps);
  initialise(sm.p_full, kGroupWarps);
  initialise(sm.stats_full, kGroupWarps);
  initialise(sm.stats_empty, kGroupWarps);
  initialise(sm.o_ready, kGroupWarps);
  initialise(sm.o_full, 1);
  initialise(sm.done, 1);
  ptx::fence_initialised_barriers();
}

template <Config config>
__device__ void forward(const Parameters& p) {
  auto& sm = shared::dynamic_shared_memory<SharedMemory<config>>();
  const int warp = shared::this_warp();
  const Role role = role_of(warp);

  if (threadIdx.x == 0) initialise_barriers<config>(sm);
  const std::uint32_t tensor_memory = tile::take_tensor_memory(role == Role::kMultiply, sm);

  if (role == Role::kSoftmax) {
    ptx::raise_registers<kSoftmaxRegisters>();
    softmax<config>(p, sm, tensor_memory, warp);
  } else if (role == Role::kCorrect) {
    ptx::lower_registers<kCorrectRegisters>();
    correct<config>(p, sm, tensor_memory, warp);
  } else {
    ptx::lower_registers<kOtherRegisters>();
    if (role == Role::kMultiply) {
      multiply<config>(sm, tensor_memory);
    } else if (role == Role::kLoad) {
      if (ptx::elect()) {
        common::load_items<kKeyRows>(
            p, sm, [](const Parameters& p, int ticket, Work& work) { find_work<config>(p, ticket, work); });
      }
    }
  }
  tile::return_tensor_memory(role == Role::kMultiply, tensor_memory);
}

}  // namespace flashback::sm100::forward
