// The map of the sm_90a backward kernel at head dim 128: where everything lives, who signals whom. Plain C++:
// the host plans from this file, the kernel is compiled from it. Work, parameters and the order of the
// workspace are those of head dim 64 (kernels/sm90/backward/config.h).
//
// dK and dV of 128 keys take half of the register file, so that K and V stay in shared memory, and no
// warpgroup has room for both gradients and scores. One computes scores, one owns dV, one owns dK.
//
// Time runs down; an arrow is a barrier of SharedMemory.
//
//   load (warp 0)       compute (4-7)                       dV (8-11)        dK (12-15)       reduce (1)
//   Q, lse, K      ->   S = Q K^T, of the tile before: dQ = dS K                          ->  added to global
//   dO, delta, V   ->   dP = dO V^T
//                       P = exp2(S * scale_log2 - lse)  ->  dV += P^T dO
//                  <-   dS = P * (dP - delta)           ->                   dK += dS^T Q
//                  <-                                   <-                <-
//   ... and after the item's last query tile
//                       its dQ
//                       P's and dS's tiles are free     ->  dV stored        dK stored
//
// P and dS lie row by row in shared memory: A operands of dV and dK down their columns, of dQ along their
// rows.
#pragma once

#include "kernels/sm90/backward/config.h"

namespace flashback::sm90::backward_wide {

using backward::Config;
using backward::kKeyRows;
using backward::kQueryRows;
using backward::Parameters;
using backward::Work;
using shared::Dtype;
using shared::Mask;

// Tiles. Rows of 128 channels are two slabs of 64, side by side.
inline constexpr int kHeadDim = 128;
inline constexpr int kSlabs = kHeadDim / tile::kRowElements;
inline constexpr int kGroupKeys = 64;  // rows of one wgmma
inline constexpr int kDqFloats = kQueryRows * kHeadDim;
static_assert(kKeyRows == 2 * kGroupKeys);

// Warps.
//
//   warps   role                       registers a thread
//   0       load                         32   one thread: work, K, V, query tiles
//   1       reduce                       32   one thread
//   2, 3    none                         32
//   4-7     compute                     160   S, dP, P, dS, dQ
//   8-11    accumulate                  160   dV
//   12-15   accumulate                  160   dK
enum class Role { kLoad, kReduce, kNone, kCompute, kAccumulate };

inline constexpr int kThreads = 512;
inline constexpr int kGroupThreads = 128, kGroupWarps = 4;
inline constexpr int kFirstComputeWarp = 4, kFirstAccumulateWarp = 8;
inline constexpr int kServiceRegisters = 32, kComputeRegisters = 160, kAccumulateRegisters = 160;
static_assert(kServiceRegisters + kComputeRegisters + 2 * kAccumulateRegisters <= 512);

constexpr Role role_of(int warp) {
  return warp == 0                     ? Role::kLoad
         : warp == 1                   ? Role::kReduce
         : warp < kFirstComputeWarp    ? Role::kNone
         : warp < kFirstAccumulateWarp ? Role::kCompute
                                       : Role::kAccumulate;
}
// Warps that read the published work: all but load and none.
inline constexpr int kWorkReaders = 3 * kGroupWarps + 1;

// Stages of the rings.
inline constexpr int kTileStages = 3, kDqStages = 1, kWorkStages = 3;

// Hardware barriers, one each warpgroup: its four warps among themselves. (Barrier 0 is __syncthreads.)
inline constexpr int kComputeBarrier = 1, kFirstAccumulateBarrier = 2;

// After so many of the eight steps of P the tile before is announced: its dQ to reduce, its dS to the group
// that makes dK, whose products then run under the exponentials. Sooner they would delay S, later the next
// dS.
inline constexpr int kAnnounceStep = 0;

// dV = P^T dO and dK = dS^T Q are made alike. The values' side has V, dO, delta and P, that of the keys K, Q,
// lse and dS.
inline constexpr int kValues = 0, kKeys = 1;

struct Side {
  tile::OperandTile<kKeyRows> keys[kSlabs];                 // V or K
  tile::OperandTile<kQueryRows> rows[kTileStages][kSlabs];  // dO or Q
  // P or dS: keys 0-63, keys 64-127. After the item dV or dK on its way out, 64 keys at a time: its slabs.
  tile::OperandTile<kQueryRows> weights[2];
  float stats[kTileStages][kQueryRows];  // delta or lse_log2, in the order of stats_position

  // Who arrives (how often a phase) -> who waits: what it says.
  ptx::Barrier keys_full;   // load (1, bytes) -> compute
  ptx::Barrier keys_empty;  // compute warps (4): the item's last product with them is done -> load
  ptx::Barrier
      rows_full[kTileStages];  // load (1, bytes) -> compute, accumulate: rows and statistics are there
  // compute warps (4): S or dP is done, and accumulate warps (4): dV or dK is -> load
  ptx::Barrier rows_empty[kTileStages];
  ptx::Barrier weights_full;   // compute warps (4): P or dS is stored, or the item is over -> accumulate
  ptx::Barrier weights_empty;  // accumulate warps (4): dV or dK is done, or has left -> compute
};

struct SharedMemory {
  Side side[2];  // kValues, kKeys
  float dq[kDqStages][kDqFloats];

  ptx::Barrier work_full[kWorkStages];   // load (1) -> everybody else: the work is written
  ptx::Barrier work_empty[kWorkStages];  // everybody else's warps -> load: they are done with it
  ptx::Barrier dq_full[kDqStages];       // compute warps (4) -> reduce: dQ is staged
  ptx::Barrier dq_empty[kDqStages];      // reduce (1) -> compute: the reduction has read it
  Work work[kWorkStages];
};
static_assert(sizeof(SharedMemory) <= 232448);

inline constexpr std::uint32_t kRowsBytes =
    kSlabs * tile::OperandTile<kQueryRows>::kBytes + kQueryRows * sizeof(float);

}  // namespace flashback::sm90::backward_wide
