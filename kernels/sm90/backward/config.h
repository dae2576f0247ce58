// The map of the sm_90a backward kernel at head dim 64: what is configured, where everything lives, who
// signals whom. Plain C++: the host plans from this file, the kernel is compiled from it.
//
// One persistent CTA a multiprocessor takes work items from a counter until none is left. An item is a tile
// of 128 keys of one key/value head, and a part of the query heads of its group: all of them, or under a mask
// maybe fewer. K and V of the item sit in the registers of two compute warpgroups, 64 keys each, while the
// query tiles of those heads stream past; so dK and dV of a group in one part need no reduction. Those of
// several parts, and dQ always, are added to fp32 accumulators in global memory.
//
// Time runs down; an arrow is a barrier of SharedMemory.
//
//   load (warp 0)         compute (4-11)                      multiply (12-15)         reduce (1, 2)
//   Q, dO, stats    ->    S = K Q^T, dP = V dO^T
//                         P = exp2(S * scale_log2 - lse)
//                         dS = P * (dP - delta)         ->    dQ = dS^T K        ->    added to global
//                   <-    dV += P dO, dK += dS Q        <-                       <-
//   ... and after the item's last query tile
//                         dV, dK (as two more dS)       ->    stored
//                         of a part (as four more dS)   ->                  ->  added to global by store (3)
//   The next item's K, V and tiles are there by then: no role waits for another at the end of an item.
//   The two compute warpgroups begin their tiles in turn, so that one's softmax runs under the other's
//   products.
//
// A pair: two CTAs, a cluster, take an item of two neighbouring tiles of keys, each CTA one, and both see all
// query tiles of the item. The dQ of a query tile is that of all 256 keys and made by one of them, in turn:
// so half as much is added in global memory, and what the card has in power goes into more products.
//
//   compute               send (2)                            the peer's multiply
//   dS, every second tile ->    copied into the peer     ->    dQ = own dS^T K + sent dS^T K of the sender
//                         <-    acknowledge (the peer's 3): it has arrived, its stage here is free
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/parameters.h"
#include "kernels/ptx/barrier.h"
#include "kernels/shared/dtype.h"
#include "kernels/shared/mask.h"
#include "kernels/shared/sequences.h"
#include "kernels/shared/tensor_map_bytes.h"
#include "kernels/tile/operand.h"

namespace flashback::sm90::backward {

using shared::Dtype;
using shared::Mask;

struct Config {
  int head_dim;  // 64; 128 in kernels/sm90/backward_wide
  Dtype dtype;   // changes meaning
  Mask mask;     // changes meaning
  int ctas = 1;  // that share the dQ of a work item: 1, or a pair. Fewer bytes, and longer items
};

// Tiles.
inline constexpr int kHeadDim = 64;
inline constexpr int kQueryRows = 64;
inline constexpr int kKeyRows = 128;   // of a work item
inline constexpr int kGroupKeys = 64;  // of a compute warpgroup: the rows of one wgmma
static_assert(kHeadDim == tile::kRowElements && kGroupKeys == tile::kRowElements);

// Warps.
//
//   warps   role                        registers a thread
//   0       load                         32   one thread: work, K, V, query tiles
//   1       reduce                       32   one thread for each stage of the dq ring
//   2       reduce; of a pair: send      32   one thread
//   3       store; of a pair: acknowledge 32  one thread: dV and dK of a part
//   4-11    compute                     208   two warpgroups, 64 keys each
//   12-15   multiply                     64   dQ, and the stores of dV and dK
enum class Role { kLoad, kReduce, kSend, kAcknowledge, kStore, kCompute, kMultiply };

inline constexpr int kThreads = 512;
inline constexpr int kGroupThreads = 128;
inline constexpr int kComputeWarps = 8, kMultiplyWarps = 4;
inline constexpr int kFirstReduceWarp = 1, kFirstComputeWarp = 4,
                     kFirstMultiplyWarp = kFirstComputeWarp + kComputeWarps;
inline constexpr int kServiceRegisters = 32, kComputeRegisters = 208, kMultiplyRegisters = 64;
static_assert(kServiceRegisters + 2 * kComputeRegisters + kMultiplyRegisters <= 512);

constexpr Role role_of(int ctas, int warp) {
  return warp == 0                   ? Role::kLoad
         : warp == kFirstReduceWarp  ? Role::kReduce
         : warp == 2                 ? (ctas == 1 ? Role::kReduce : Role::kSend)
         : warp < kFirstComputeWarp  ? (ctas == 1 ? Role::kStore : Role::kAcknowledge)
         : warp < kFirstMultiplyWarp ? Role::kCompute
                                     : Role::kMultiply;
}
// Warps that read the published work: all but load.
inline constexpr int kWorkReaders = kThreads / 32 - 1;

// Stages of the rings. The peer's K and dS take the place of some of a pair's.
struct Stages {
  int k, tiles, ds, dq;
};
constexpr Stages stages_of(int ctas) {
  return ctas == 1 ? Stages{2, 6, 2, 2} : Stages{1, 5, 3, 1};
}
inline constexpr int kWorkStages = 3, kPeerStages = 2, kTicketStages = 2;
inline constexpr int kSumStages = 4;  // of the dS ring, that dV and dK of a part take

// Hardware barriers of the two compute warpgroups, one each: this group's turn to begin a tile. The other
// group arrives, this one waits. (Barrier 0 is __syncthreads.)
inline constexpr int kFirstTurnBarrier = 1;

// Statistics of a query tile: lse_log2 of its rows, then delta, each in the order of stats_position.
inline constexpr int kStatsFloats = 2 * kQueryRows;
inline constexpr int kDqFloats = kQueryRows * kHeadDim;
// Of a tile of keys in dk_accum or dv_accum: the keys of one compute warpgroup, then those of the other, each
// in the order of dQ.
inline constexpr int kSumFloats = kKeyRows * kHeadDim;
static_assert(kQueryRows == kGroupKeys && kSumFloats == 2 * kDqFloats);

// Where `row` of a query tile stands among its statistics: a thread finds the four rows of its next two
// blocks of eight columns of S in one 16-byte load.
constexpr int stats_position(int row) {
  return (row & ~15) + 4 * ((row >> 1) & 3) + 2 * ((row >> 3) & 1) + (row & 1);
}

// Where (row, d) of a query tile stands in its tile of the accumulator: in the order of the multiply
// warpgroup's registers, [d / 8] [thread 0..127][4], so that a thread stages sixteen bytes at a time and the
// tile is one reduction.
constexpr int dq_position(int row, int d) {
  const int thread = row / 16 * 32 + row % 8 * 4 + d % 8 / 2;
  return d / 8 * 512 + thread * 4 + row / 8 % 2 * 2 + d % 2;
}

// What a ticket stands for: a tile of keys of one key/value head, a part of the query heads of its group, and
// of each head the query tiles [begin, end) that see the keys. Those before `edge` and from `tail` on see
// them in part and pay for the mask. One thread finds it, all roles read it.
struct Work {
  int batch;  // -1: there is no more
  int kv_head;
  int part;          // of its group
  int head, heads;   // of the part: its first query head, and how many
  int key_row;       // of the keys in sight
  int query_number;  // of the sequence's first query tile, among those of all sequences
  int begin, edge, tail, end;
  int first;  // of the query tiles, in deterministic mode; after the last one follows `begin`
  shared::Sight sight;

  constexpr int tiles() const { return end - begin; }  // of a head
  constexpr int all_tiles() const { return tiles() * heads; }
};

// dS of a query tile by its rows: keys 0-63, keys 64-127.
struct DsTile {
  tile::OperandTile<kQueryRows> half[2];
};

// What a CTA of a pair has besides. "Peer" is the other CTA.
struct PeerTiles {
  // One tile, which comes and goes with the CTA's own K under the same barriers: a ring of it would need the
  // same stages here.
  static_assert(stages_of(2).k == 1);

  tile::OperandTile<kKeyRows> k;  // of the peer's keys
  DsTile ds[kPeerStages];         // the peer's
};
struct PeerBarriers {
  ptx::Barrier ds_full[kPeerStages];   // acknowledge (1, the bytes that it expects) -> acknowledge, multiply
  ptx::Barrier ds_empty[kPeerStages];  // the peer's multiply warps (4): dQ is done there -> send
  ptx::Barrier ticket_full[kTicketStages];   // the leader's load (1) -> load of the other
  ptx::Barrier ticket_empty[kTicketStages];  // the other's load (1): it is read -> load of the leader
  std::int32_t ticket[kTicketStages];
};

// What a CTA alone has besides.
struct PartBarriers {
  // multiply's first warp (1): a sum is in a stage of dS -> store, which arrives at ds_empty in its place
  ptx::Barrier leaving[stages_of(1).ds];
};
struct None {};

template <int ctas>
struct SharedMemory {
  static constexpr Stages kStages = stages_of(ctas);

  tile::OperandTile<kKeyRows> k[kStages.k];  // read until the item's last dQ
  tile::OperandTile<kKeyRows> v;             // free once it is in registers
  tile::OperandTile<kQueryRows> q[kStages.tiles], dout[kStages.tiles];
  union {
    DsTile of_queries;
    tile::OperandTile<kKeyRows> gradient;  // dV or dK on its way out
    float sums[kDqFloats];                 // the same of a part, 64 keys of it, in the order of dQ
  } ds[kStages.ds];
  float dq[kStages.dq][kDqFloats];
  [[no_unique_address]] std::conditional_t<ctas == 2, PeerTiles, None> peer;
  float stats[kStages.tiles][kStatsFloats];

  // Who arrives (how often a phase) -> who waits: what it says.
  ptx::Barrier work_full[kWorkStages];   // load (1) -> everybody else: the work is written
  ptx::Barrier work_empty[kWorkStages];  // everybody else's warps -> load: they are done with it
  ptx::Barrier k_full[kStages.k];        // load (1, bytes) -> compute, multiply
  ptx::Barrier
      k_empty[kStages.k];  // compute warps (8): K is in registers, multiply warps (4): last dQ done -> load
  ptx::Barrier v_full;     // load (1, bytes) -> compute
  ptx::Barrier v_empty;    // compute warps (8) -> load: V is in registers
  ptx::Barrier tile_full[kStages.tiles];   // load (1, bytes) -> compute: Q, dO and statistics are there
  ptx::Barrier tile_empty[kStages.tiles];  // compute warps (8) -> load: dV and dK of the tile are done
  ptx::Barrier ds_full[kStages.ds];        // compute warps (8) -> multiply, send: dS, dV or dK is stored
  // multiply warps (4; of a part's sums store for one of them): dQ is done, or dV or dK has been read; or the
  //   peer's acknowledge (4): dS is there -> compute
  ptx::Barrier ds_empty[kStages.ds];
  ptx::Barrier dq_full[kStages.dq];   // multiply warps (4) -> reduce: dQ is staged
  ptx::Barrier dq_empty[kStages.dq];  // reduce (1) -> multiply: the reduction has read it
  [[no_unique_address]] std::conditional_t<ctas == 2, PeerBarriers, None> of_peer;
  [[no_unique_address]] std::conditional_t<ctas == 1, PartBarriers, None> of_part;
  Work work[kWorkStages];
};
static_assert(offsetof(SharedMemory<1>, dq) % tile::kGroupBytes == 0);
static_assert(offsetof(SharedMemory<2>, dq) % tile::kGroupBytes == 0);
static_assert(sizeof(SharedMemory<1>) <= 232448 && sizeof(SharedMemory<2>) <= 232448);

inline constexpr std::uint32_t kTileBytes =
    2 * tile::OperandTile<kQueryRows>::kBytes + kStatsFloats * sizeof(float);

// Dynamic shared memory of a launch.
constexpr std::uint32_t shared_bytes(const Config& config) {
  return config.ctas == 1 ? sizeof(SharedMemory<1>) : sizeof(SharedMemory<2>);
}

// Everything a launch is told.
struct Parameters {
  // 16-bit loads: dims (d, row, head, batch, shift), box 64 channels x 64 rows (q, dout) or 128 (k, v),
  // 128-byte swizzle. Rows end where the sequence ends: see at_row.
  TensorMapBytes q, dout, k, v;
  // 16-bit stores, box 64 channels x 128 rows, or 64 at head dim 128. Not used with wide gradients or parts.
  TensorMapBytes dk, dv;
  common::View wide_dk, wide_dv;  // fp32 gradients, else no data
  const float* stats;             // [head][all tiles][kStatsFloats]
  float* dq_accum;                // [head][all tiles][query rows x head dim], zero before the launch
  // Where a group has several parts, else null: [key/value head][all tiles][kSumFloats], zero before the
  // launch. dK is not scaled yet.
  float *dk_accum, *dv_accum;
  std::int32_t* next_ticket;  // zero before the launch
  // Deterministic mode, else null: additions so far to each query tile, zero before the launch; and how many
  // tiles of keys begin at different query tiles (turns.h).
  std::int32_t* dq_turns;
  std::int32_t rotation;
  // The same of sums of parts, which add in their order: parts so far of a tile of keys, [...][dV, dK].
  std::int32_t* dk_turns;

  float scale;       // softmax scale
  float scale_log2;  // softmax scale * log2(e)
  std::int32_t kv_heads;
  std::int32_t group;       // query heads of a key/value head
  std::int32_t parts;       // that a group has: 1 at head dim 128 and for pairs
  std::int32_t part_heads;  // query heads of a part; the last one may have fewer
  std::int32_t head_dim;
  bool accumulate;  // wide gradients are added to what is there
  // Tickets run over sections of so many parts, of all groups of all sequences; within a section items of
  // keys ascend slowest, so that under a causal mask the longest items come first and the last ones fill the
  // gaps. Of a tile of keys the parts come in their order.
  // Ragged sequences: shared::head_place_of.
  std::int32_t section;
  shared::Sequences sequences;
};

}  // namespace flashback::sm90::backward
