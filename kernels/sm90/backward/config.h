// The map of the sm_90a backward kernel at head dim 64: what is configured, where everything lives, who
// signals whom. Plain C++: the host plans from this file, the kernel is compiled from it.
//
// One persistent CTA a multiprocessor takes work items from a counter until none is left. An item is a tile
// of 128 keys of one key/value head. K and V of the item sit in the registers of two compute warpgroups, 64
// keys each, while the query tiles of every query head of the group stream past; so dK and dV of a group need
// no reduction. dQ is added to an fp32 accumulator in global memory.
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
//   The next item's K, V and tiles are there by then: no role waits for another at the end of an item.
//   The two compute warpgroups begin their tiles in turn, so that one's softmax runs under the other's
//   products.
#pragma once

#include <cstddef>
#include <cstdint>

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
  int head_dim;  // 64
  Dtype dtype;   // changes meaning
  Mask mask;     // changes meaning
};

// Tiles.
inline constexpr int kHeadDim = 64;
inline constexpr int kQueryRows = 64;
inline constexpr int kKeyRows = 128;   // of a work item
inline constexpr int kGroupKeys = 64;  // of a compute warpgroup: the rows of one wgmma
static_assert(kHeadDim == tile::kRowElements && kGroupKeys == tile::kRowElements);

// Warps.
//
//   warps   role       registers a thread
//   0       load        32   one thread: work, K, V, query tiles
//   1-2     reduce      32   one thread each: a stage of the dq ring
//   3       none        32
//   4-11    compute    208   two warpgroups, 64 keys each
//   12-15   multiply    64   dQ, and the stores of dV and dK
enum class Role { kLoad, kReduce, kNone, kCompute, kMultiply };

inline constexpr int kThreads = 512;
inline constexpr int kGroupThreads = 128;
inline constexpr int kReduceWarps = 2, kComputeWarps = 8, kMultiplyWarps = 4;
inline constexpr int kFirstReduceWarp = 1, kFirstComputeWarp = 4,
                     kFirstMultiplyWarp = kFirstComputeWarp + kComputeWarps;
inline constexpr int kServiceRegisters = 32, kComputeRegisters = 208, kMultiplyRegisters = 64;
static_assert(kServiceRegisters + 2 * kComputeRegisters + kMultiplyRegisters <= 512);

constexpr Role role_of(int warp) {
  return warp < kFirstReduceWarp                  ? Role::kLoad
         : warp < kFirstReduceWarp + kReduceWarps ? Role::kReduce
         : warp < kFirstComputeWarp               ? Role::kNone
         : warp < kFirstMultiplyWarp              ? Role::kCompute
                                                  : Role::kMultiply;
}

// Stages of the rings.
inline constexpr int kWorkStages = 3, kKStages = 2, kTileStages = 6, kDsStages = 2, kDqStages = kReduceWarps;

// Hardware barriers of the two compute warpgroups, one each: this group's turn to begin a tile. The other
// group arrives, this one waits. (Barrier 0 is __syncthreads.)
inline constexpr int kFirstTurnBarrier = 1;

// Statistics of a query tile: lse_log2 of its rows, then delta, each in the order of stats_position.
inline constexpr int kStatsFloats = 2 * kQueryRows;
inline constexpr int kDqFloats = kQueryRows * kHeadDim;

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

// What a ticket stands for: a tile of keys of one key/value head, and the query tiles [begin, end) that see
// it. Those before `edge` and from `tail` on see it in part and pay for the mask. One thread finds it, all
// roles read it.
struct Work {
  int batch;  // -1: there is no more
  int kv_head;
  int key_row;       // of the keys in sight
  int query_number;  // of the sequence's first query tile, among those of all sequences
  int begin, edge, tail, end;
  int first;  // of the query tiles, in deterministic mode; after the last one follows `begin`
  shared::Sight sight;

  constexpr int tiles() const { return end - begin; }
};

struct SharedMemory {
  tile::OperandTile<kKeyRows> k[kKStages];  // read until the item's last dQ: the next one's arrives beside it
  tile::OperandTile<kKeyRows> v;            // free once it is in registers
  tile::OperandTile<kQueryRows> q[kTileStages], dout[kTileStages];
  union {
    tile::OperandTile<kQueryRows> half[2];  // dS by query rows: keys 0-63, keys 64-127
    tile::OperandTile<kKeyRows> gradient;   // dV or dK on its way out
  } ds[kDsStages];
  float dq[kDqStages][kDqFloats];
  float stats[kTileStages][kStatsFloats];

  // Who arrives (how often a phase) -> who waits: what it says.
  ptx::Barrier work_full[kWorkStages];   // load (1) -> everybody else: the work is written
  ptx::Barrier work_empty[kWorkStages];  // everybody else's warps (14) -> load: they are done with it
  ptx::Barrier k_full[kKStages];         // load (1, bytes) -> compute, multiply
  ptx::Barrier
      k_empty[kKStages];  // compute warps (8): K is in registers, multiply warps (4): last dQ done -> load
  ptx::Barrier v_full;    // load (1, bytes) -> compute
  ptx::Barrier v_empty;   // compute warps (8) -> load: V is in registers
  ptx::Barrier tile_full[kTileStages];   // load (1, bytes) -> compute: Q, dO and statistics are there
  ptx::Barrier tile_empty[kTileStages];  // compute warps (8) -> load: dV and dK of the tile are done
  ptx::Barrier ds_full[kDsStages];       // compute warps (8) -> multiply: dS, dV or dK is stored
  ptx::Barrier ds_empty[kDsStages];      // multiply warps (4) -> compute: dQ is done, or the store has read
  ptx::Barrier dq_full[kDqStages];       // multiply warps (4) -> reduce: dQ is staged
  ptx::Barrier dq_empty[kDqStages];      // reduce (1) -> multiply: the reduction has read it
  Work work[kWorkStages];
};
static_assert(offsetof(SharedMemory, dq) % tile::kGroupBytes == 0);
static_assert(sizeof(SharedMemory) <= 232448);

inline constexpr int kWorkReaders = kComputeWarps + kMultiplyWarps + kReduceWarps;
inline constexpr std::uint32_t kTileBytes =
    2 * tile::OperandTile<kQueryRows>::kBytes + kStatsFloats * sizeof(float);

// Dynamic shared memory of a launch.
constexpr std::uint32_t shared_bytes(const Config&) {
  return sizeof(SharedMemory);
}

// Everything a launch is told.
struct Parameters {
  // 16-bit loads: dims (d, row, head, batch, shift), box d x 64 rows (q, dout) or 128 (k, v), 128-byte
  // swizzle. Rows end where the sequence ends: see at_row.
  TensorMapBytes q, dout, k, v;
  TensorMapBytes dk, dv;          // 16-bit stores, box d x 128 rows. Not used with wide gradients
  common::View wide_dk, wide_dv;  // fp32 gradients, else no data
  const float* stats;             // [head][all tiles][kStatsFloats]
  float* dq_accum;                // [head][all tiles][kDqFloats], zero before the launch
  std::int32_t* next_ticket;      // zero before the launch
  // Deterministic mode, else null: additions so far to each query tile, zero before the launch; and how many
  // tiles of keys begin at different query tiles (turns.h).
  std::int32_t* dq_turns;
  std::int32_t rotation;

  float scale;       // softmax scale
  float scale_log2;  // softmax scale * log2(e)
  std::int32_t kv_heads;
  std::int32_t group;  // query heads of a key/value head
  std::int32_t head_dim;
  bool accumulate;  // wide gradients are added to what is there
  // Tickets run over sections of so many key/value heads, of all sequences; within a section tiles of keys
  // ascend slowest, so that under a causal mask the longest items come first and the last ones fill the gaps.
  // Ragged sequences: over the heads of each tile of keys.
  std::int32_t section;
  shared::Sequences sequences;
};

}  // namespace flashback::sm90::backward
