// The map of the sm_90a forward kernel: what is configured, where everything lives, who signals whom. Plain
// C++: the host plans from this file, the kernel is compiled from it.
//
// One persistent CTA a multiprocessor takes work items from a counter until none is left. An item is a tile
// of queries of one head: 64 rows for each compute warpgroup, whose O and softmax state stay in registers
// while the tiles of 128 keys that the queries see stream past, from the last one to the first.
//
// Time runs down; an arrow is a barrier of SharedMemory. Of a tile of keys t, each compute warpgroup:
//
//   load (warp 0)         compute (4 ..)
//   Q, once an item  ->
//   K(t)             ->   S(t) = Q K(t)^T       issued together, the tensor cores do both while
//   V(t + 1)         ->   O += P(t + 1) V(t + 1)   the softmax of S(t) begins as soon as S(t) is there
//                    <-   m, P(t) = exp2(S(t) * scale_log2 - m), l
//                    <-   O *= exp2(change of m)
//   ... and after the item's first tile of keys
//                         O += P V,  O / l and lse to global memory
//   The next item's Q, K and V are there by then.
//   The warpgroups issue their products in turn, so that the softmax of one runs under the products of the
//   others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/forward.h"
#include "kernels/ptx/barrier.h"
#include "kernels/shared/dtype.h"
#include "kernels/tile/operand.h"

namespace flashback::sm90::forward {

using shared::Dtype;
using shared::Mask;
using Parameters = common::ForwardParameters;

struct Config {
  int head_dim;  // 64 or 128
  Dtype dtype;   // changes meaning
  Mask mask;     // changes meaning

  // Slabs of 64 channels, side by side.
  constexpr int slabs() const { return head_dim / tile::kRowElements; }
  // Compute warpgroups: as many as the registers of their O and S leave room for.
  constexpr int groups() const { return head_dim == 64 ? 3 : 2; }
  constexpr int query_rows() const;
  constexpr int threads() const;
  constexpr int service_registers() const { return head_dim == 64 ? 32 : 40; }
  constexpr int compute_registers() const { return head_dim == 64 ? 160 : 232; }
  // Stages of the rings of K and of V.
  constexpr int key_stages() const { return head_dim == 64 ? 4 : 2; }
};

// Tiles.
inline constexpr int kGroupRows = 64;  // of a compute warpgroup: the rows of one wgmma
inline constexpr int kKeyRows = 128;

// Warps.
//
//   warps   role       registers a thread
//   0       load        32 or 40   one thread: work, Q, K, V
//   1-3     none        the same
//   4 ..    compute     160 (three warpgroups) or 232 (two): 64 queries each
enum class Role { kLoad, kNone, kCompute };

inline constexpr int kGroupThreads = 128, kGroupWarps = 4, kFirstComputeWarp = 4;

constexpr Role role_of(int warp) {
  return warp == 0 ? Role::kLoad : warp < kFirstComputeWarp ? Role::kNone : Role::kCompute;
}
constexpr int Config::query_rows() const {
  return groups() * kGroupRows;
}
constexpr int Config::threads() const {
  return (1 + groups()) * kGroupThreads;
}
// A CTA starts with as many registers as there are for all its threads, a multiple of eight each.
constexpr bool registers_suffice(const Config& config) {
  const int at_start = 65536 / config.threads() / 8 * 8;
  return config.service_registers() + config.groups() * config.compute_registers() <=
         at_start * (1 + config.groups());
}

inline constexpr int kWorkStages = 3, kQueryStages = 2;

// Hardware barriers of the compute warpgroups, one each: this group's turn to issue products. (Barrier 0 is
// __syncthreads.)
inline constexpr int kFirstTurnBarrier = 1;

// What a ticket stands for: the queries, and the tiles of keys that they see, visited from the last one on.
// Those that some rows see in part pay for the mask. One thread finds it, all roles read it.
struct Work : common::Queries {
  shared::KeyTiles keys;
  shared::KeyTiles seen[3];  // of them, those that a compute warpgroup's rows see; maybe none
  common::Destination to;

  constexpr shared::TileRange visited() const { return {keys.begin, keys.end}; }
};

template <Config config>
struct SharedMemory {
  static_assert(registers_suffice(config));
  static constexpr int kStages = config.key_stages(), kSlabs = config.slabs();
  using QueryTile = tile::OperandTile<config.query_rows()>;
  using KeyTile = tile::OperandTile<kKeyRows>;

  QueryTile q[kQueryStages][kSlabs];  // at the end of an item O passes through it on its way out
  KeyTile k[kStages][kSlabs], v[kStages][kSlabs];

  // Who arrives (how often a phase) -> who waits: what it says.
  ptx::Barrier work_full[kWorkStages];   // load (1) -> compute: the work is written
  ptx::Barrier work_empty[kWorkStages];  // compute warps -> load: they are done with it
  ptx::Barrier q_full[kQueryStages];     // load (1, bytes) -> compute
  ptx::Barrier q_empty[kQueryStages];    // compute warps -> load: O has left
  ptx::Barrier k_full[kStages];          // load (1, bytes) -> compute
  ptx::Barrier k_empty[kStages];         // compute warps -> load: S is done
  ptx::Barrier v_full[kStages];          // load (1, bytes) -> compute
  ptx::Barrier v_empty[kStages];         // compute warps -> load: P V is done
  Work work[kWorkStages];
};

// Dynamic shared memory of a launch.
template <Config config>
constexpr std::uint32_t shared_bytes() {
  static_assert(sizeof(SharedMemory<config>) <= 232448);
  return sizeof(SharedMemory<config>);
}
constexpr std::uint32_t shared_bytes(int head_dim) {
  return head_dim == 64 ? shared_bytes<Config{64, Dtype::kBf16, Mask::kDense}>()
                        : shared_bytes<Config{128, Dtype::kBf16, Mask::kDense}>();
}

}  // namespace flashback::sm90::forward
