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
//   0       load        32   one thread: tickets, K, V, query tiles
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
inline constexpr int kTicketStages = 2, kKStages = 2, kTileStages = 6, kDsStages = 2,
                     kDqStages = kReduceWarps;

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
  ptx::Barrier ticket_full[kTicketStages];   // load (1) -> everybody else: the ticket is written
  ptx::Barrier ticket_empty[kTicketStages];  // everybody else's warps (14) -> load: it is read
  ptx::Barrier k_full[kKStages];             // load (1, bytes) -> compute, multiply
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
  std::int32_t ticket[kTicketStages];
};
static_assert(offsetof(SharedMemory, dq) % tile::kGroupBytes == 0);
static_assert(sizeof(SharedMemory) <= 232448);

inline constexpr int kTicketReaders = kComputeWarps + kMultiplyWarps + kReduceWarps;
inline constexpr std::uint32_t kTileBytes =
    2 * tile::OperandTile<kQueryRows>::kBytes + kStatsFloats * sizeof(float);

// Dynamic shared memory of a launch.
constexpr std::uint32_t shared_bytes(const Config&) {
  return sizeof(SharedMemory);
}

// Everything a launch is told. Lengths in rows and tiles.
struct Parameters {
  TensorMapBytes q, dout;     // 16-bit loads: dims (d, row, head, batch), box d x 64 rows, 128-byte swizzle
  TensorMapBytes k, v;        // the same, box d x 128 rows
  TensorMapBytes dk, dv;      // 16-bit stores, box d x 128 rows, 128-byte swizzle
  const float* stats;         // [batch][head][q_tiles][kStatsFloats]
  float* dq_accum;            // [batch][head][q_tiles][kDqFloats], zero before the launch
  std::int32_t* next_ticket;  // zero before the launch

  float scale;       // softmax scale
  float scale_log2;  // softmax scale * log2(e)
  std::int32_t q_rows, k_rows, q_tiles, k_tiles;
  std::int32_t batch, heads, kv_heads;
  std::int32_t group;  // query heads of a key/value head
  // Tickets run over sections of so many key/value heads; within a section tiles of keys ascend slowest, so
  // that under a causal mask the longest items come first and the last ones fill the gaps.
  std::int32_t section;
};

// The small kernels around it: one CTA for each query tile (x), head (y) and batch (z).
inline constexpr int kStatsThreads = 256, kConvertThreads = 256;

// stats: the statistics of the tile; its part of dq_accum and next_ticket become zero.
struct StatsParameters {
  common::View out, dout;
  const float* lse;  // natural log, (batch, head, row)
  std::int64_t lse_batch_stride, lse_head_stride;
  float* stats;
  float* dq_accum;
  std::int32_t* next_ticket;
  std::int32_t q_rows;
};

// convert: dq = scale * dq_accum in 16 bit.
struct ConvertParameters {
  const float* dq_accum;
  common::View dq;
  float scale;
  std::int32_t q_rows;
};

}  // namespace flashback::sm90::backward
