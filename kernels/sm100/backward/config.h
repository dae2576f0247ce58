// The map of the sm_100a backward kernel: what is configured, where everything lives, who signals whom.
// Plain C++: the host plans from this file, the kernel is compiled from it.
//
// One CTA owns 128 keys of one head. It keeps K and V, walks over the query tiles t that see its keys, sums
// dK and dV in tensor memory, and adds its part of dQ to an fp32 accumulator in global memory:
//
//   S  = K Q^T               P  = exp2(S * scale_log2 - lse_log2)          (all transposed: a lane is a key)
//   dP = V dO^T              dS = P * (dP - delta)
//   dV += P dO               dK += dS Q               dQ = dS^T K
//
// Time runs down; an arrow is a barrier of SharedMemory. The steady state of the map kSplit:
//
//   load (13)             multiply (12)              compute (4-11)                   reduce (0-3)
//
//   Q(t+1) --q_full-->    S(t+1) = K Q(t+1)^T   <--s_empty--  S(t) in registers
//   lse(t+1)   ----------------------------- lse_full -->     P(t) = exp2(...)
//                         dV += P(t) dO(t)      <--p_full---  P(t) stored
//          <-dout_empty-                        --p_empty-->
//   dO(t+1) -dout_full->     (for dP(t+1))      --dp_full-->  dP(t) in registers
//   delta(t+1)   --------------------------- delta_full -->   dS(t) = P(t) * (...)
//                         dK += dS(t) Q(t)      <--ds_full--  dS(t) stored twice
//          <-q_empty--
//                         dQ(t) = dS(t)^T K     ------------------------ dq_full -->  dQ(t) in registers
//                         dP(t+1) = V dO(t+1)^T <----------------------- dq_empty --  dQ(t) staged and added
//
// Map kAliased: P lies over S and dS over dP. S(t+1) may be issued only after the dV that reads P(t), so the
// order is S(t+1), dK(t), dQ(t), dP(t+1), dV(t+1), and neither s_empty nor p_empty exist. That S(t+1) does
// not overtake dV(t), and dQ(t) not dK(t), rests on the tensor core's issue order; kSplit asks for nothing of
// the kind.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ptx/barrier.h"
#include "kernels/shared/dq_order.h"
#include "kernels/shared/dtype.h"
#include "kernels/shared/mask.h"
#include "kernels/shared/sequences.h"
#include "kernels/shared/tensor_map_bytes.h"
#include "kernels/shared/turns.h"
#include "kernels/tile/columns.h"
#include "kernels/tile/operand.h"

namespace flashback::sm100::backward {

using flashback::TensorMapBytes;
using shared::Dtype;
using shared::Mask;

// Where P and dS live: over S and dP, or in tensor memory of their own.
enum class TensorMemory { kAliased, kSplit };

// How the eight compute warps announce a finished store: all together (one barrier of 256 threads before each
// signal) or each warp for itself.
enum class Signal { kCta, kWarp };

struct Config {
  int head_dim;                // 64, or 128: kAliased only, all of tensor memory is accumulators
  Dtype dtype;                 // changes meaning
  Mask mask;                   // changes meaning
  TensorMemory tensor_memory;  // changes speed only
  Signal signal;               // changes speed only
};

// Everything a launch is told. Rows are those in sight (kernels/shared/sequences.h), tiles are numbered
// through all sequences; [tile] stands for [head][all tiles of a head].
struct Parameters {
  // 16-bit loads: dims (d, row, head, batch, shift), box 64 x 128 rows, 128-byte swizzle. Rows end where the
  // sequence ends: see at_row.
  TensorMapBytes q, k, v, dout;
  // 16-bit stores: same dims, box 32 x 128 rows, 64-byte swizzle. Not used with dk_accum.
  TensorMapBytes dk, dv;
  const float* lse_log2;  // [tile][128]
  const float* delta;     // [tile][128]
  // Sums in fp32, [tile][128 * head dim] in the private order of kernels/shared/dq_order.h. dK and dV are
  // summed in global memory where query heads share a key head, or fp32 gradients are wanted; else null.
  float *dq_accum, *dk_accum, *dv_accum;
  // Deterministic mode, else null: additions so far to dQ of a query tile, and to dV and dK of a tile of keys
  // by each compute group ([tile][4]); and the next work item. Zero before the launch.
  std::int32_t *dq_turns, *dk_turns, *next_work;
  float scale;         // softmax scale
  float scale_log2;    // softmax scale * log2(e)
  std::int32_t group;  // query heads of a key head
  shared::Sequences sequences;
};

// Grid: x = tiles of keys of all sequences (ascending: under a causal mask the longest start first), y =
// query heads. In deterministic mode CTAs take the same items from a counter, so that whoever waits for his
// turn waits for a CTA that has started.
inline constexpr int kQueryRows = 128;  // of a tile: columns of S
inline constexpr int kKeyRows = 128;    // of a CTA: lanes of S

// What a thread has in hand of its lane, of S, dP, dQ, dK or dV; in 16 bit two a word, eight a chunk of 16
// bytes.
inline constexpr int kBlockColumns = 32, kBlockWords = kBlockColumns / 2, kBlockChunks = kBlockColumns / 8;

// Warps.
//
//   warps   role       registers a thread (dense, else)
//   0-3     reduce     152  136    dQ: tensor memory -> shared -> added to global
//   4-11    compute    136  144    P and dS; at the end dK and dV
//   12      multiply    88   88    issues every product; owns tensor memory
//   13      load        88   88    fills shared memory
//   14-15   none        88   88    complete the warpgroup: setmaxnreg is one value for all four
enum class Role { kReduce, kCompute, kMultiply, kLoad, kNone };

inline constexpr int kThreads = 512;
inline constexpr int kReduceWarps = 4, kComputeWarps = 8;
inline constexpr int kFirstComputeWarp = kReduceWarps;
inline constexpr int kMultiplyWarp = kFirstComputeWarp + kComputeWarps, kLoadWarp = kMultiplyWarp + 1;
inline constexpr int kReduceThreads = 32 * kReduceWarps, kComputeThreads = 32 * kComputeWarps;
// Compute warps 4-7 and 8-11 share the lanes and divide the columns: group g has rows 32 g .. 32 g + 31 of
// each half tile.
inline constexpr int kGroupThreads = 128;

constexpr Role role_of(int warp) {
  return warp < kFirstComputeWarp ? Role::kReduce
         : warp < kMultiplyWarp   ? Role::kCompute
         : warp == kMultiplyWarp  ? Role::kMultiply
         : warp == kLoadWarp      ? Role::kLoad
                                  : Role::kNone;
}

struct Registers {
  int reduce, compute, others;
};
constexpr Registers registers(Mask mask) {
  return mask == Mask::kDense ? Registers{152, 136, 88} : Registers{136, 144, 88};
}
constexpr bool registers_fit(Registers r) {
  return kGroupThreads * (r.reduce + 2 * r.compute + r.others) <= 64 * 1024;
}
static_assert(registers_fit(registers(Mask::kDense)) && registers_fit(registers(Mask::kCausal)));

// Hardware barriers of whole warps; 0 is __syncthreads.
enum NamedBarrier {
  kGroupBarrier = 1,    // and 2: one compute group, a gradient is staged
  kComputeBarrier = 3,  // all compute warps: alias guards, and before each signal under Signal::kCta
  kReduceBarrier = 4,   // the reduce warps: a dQ buffer is free, a dQ buffer is full
};

// Tensor memory at head dim 64, by columns. S, dP, dK, dV: a lane is a key; dQ: a lane is a query row. P and
// dS are 16-bit, two a column.
//
//            0        128   192        320  384  448   512
//   kAliased | S       | dV | dP        | dK |          |
//            | P |          |dS|
//                           |dQ|
//   kSplit   | S       | dV | dP        | dK | P  | dS  |
//                           |dQ|
//
// At head dim 128 dV and dK are as wide as S and dP, and with kAliased the four fill it; dQ is as wide as dP.
struct TensorColumns {
  tile::Columns s, dv, dp, dk, dq, p, ds;
};
constexpr TensorColumns tensor_columns(TensorMemory map, int head_dim = 64) {
  const bool split = map == TensorMemory::kSplit;
  const tile::Columns s = {0, kQueryRows};
  const tile::Columns dv = {s.end(), head_dim};
  const tile::Columns dp = {dv.end(), kQueryRows};
  const tile::Columns dk = {dp.end(), head_dim};
  const tile::Columns dq = {dp.first, head_dim};
  const tile::Columns p = {split ? dk.end() : s.first, kQueryRows / 2};
  const tile::Columns ds = {split ? p.end() : dp.first, kQueryRows / 2};
  return {s, dv, dp, dk, dq, p, ds};
}
constexpr bool accumulators_apart(const TensorColumns& c) {
  return !c.s.overlaps(c.dv) && !c.s.overlaps(c.dp) && !c.s.overlaps(c.dk) && !c.dv.overlaps(c.dp) &&
         !c.dv.overlaps(c.dk) && !c.dp.overlaps(c.dk) && c.dp.contains(c.dq);
}
constexpr bool operands_apart(const TensorColumns& c) {
  return !c.p.overlaps(c.s) && !c.p.overlaps(c.dp) && !c.ds.overlaps(c.s) && !c.ds.overlaps(c.dp) &&
         !c.p.overlaps(c.ds) && !c.p.overlaps(c.dk) && !c.ds.overlaps(c.dk);
}
inline constexpr TensorColumns kAliasedColumns = tensor_columns(TensorMemory::kAliased);
inline constexpr TensorColumns kSplitColumns = tensor_columns(TensorMemory::kSplit);
inline constexpr TensorColumns kWideColumns = tensor_columns(TensorMemory::kAliased, 128);
static_assert(accumulators_apart(kAliasedColumns) && accumulators_apart(kSplitColumns));
static_assert(accumulators_apart(kWideColumns) && kWideColumns.dk.end() == tile::kTensorMemoryColumns);
static_assert(kAliasedColumns.s.contains(kAliasedColumns.p) &&
              kAliasedColumns.dp.contains(kAliasedColumns.ds));
static_assert(operands_apart(kSplitColumns) && kSplitColumns.ds.end() <= tile::kTensorMemoryColumns);

// Shared memory. Buffers of a ring are as many as its stages, which are the same in every variant.
inline constexpr int kQStages = 2, kLseStages = 2, kDoutStages = 1, kDeltaStages = 1, kDqStages = 2;

// 64 channels of a tile's rows; a tile has as many of them as its head dim needs.
using QueryTile = tile::OperandTile<kQueryRows>;
using KeyTile = tile::OperandTile<kKeyRows>;
constexpr int slabs(int head_dim) {
  return head_dim / tile::kRowElements;
}

// A CTA's share: a tile of keys of a query head, and the query tiles that see it. Found by one thread. The
// others read it in aligned pieces of 16 bytes, in which therefore no byte is left out.
struct alignas(16) Work {
  std::int64_t first_query_tile;  // of the sequence, by its number among those of all heads
  int batch;                      // -1: there are fewer tiles than CTAs
  int head;
  int key_tile;  // of its sequence
  int k_number;  // of the tile among all tiles of a head
  shared::Sight sight;
  shared::Lengths lengths;
  shared::TileRange tiles;
};
static_assert(sizeof(Work) == sizeof(std::int64_t) + 14 * sizeof(int));

template <int head_dim>
struct SharedMemory {
  static constexpr int kSlabs = slabs(head_dim);

  QueryTile q[kQStages][kSlabs];  // at the end: dK on its way out
  KeyTile k[kSlabs];
  KeyTile v[kSlabs];  // at the end, with dO: dV on its way out
  QueryTile dout[kDoutStages][kSlabs];
  KeyTile ds[2];                                    // dS by keys, query rows 0-63 and 64-127
  float dq[kDqStages][kQueryRows * kBlockColumns];  // 32 columns of dQ, in the order of the accumulator
  float lse[kLseStages][kQueryRows];
  float delta[kDeltaStages][kQueryRows];

  // Who arrives (arrivals a phase) -> who waits: what it says.
  ptx::Barrier q_full[kQStages];           // load (1 + bytes) -> multiply: Q is there, K with the first
  ptx::Barrier q_empty[kQStages];          // commit of dK (1) -> load: Q is read
  ptx::Barrier lse_full[kLseStages];       // load (1 + bytes) -> compute: lse_log2 is there
  ptx::Barrier lse_empty[kLseStages];      // compute warps (8) -> load: it is read
  ptx::Barrier dout_full[kDoutStages];     // load (1 + bytes) -> multiply: dO is there, V with the first
  ptx::Barrier dout_empty[kDoutStages];    // commit of dV (1) -> load: dO is read
  ptx::Barrier delta_full[kDeltaStages];   // load (1 + bytes) -> compute: delta is there
  ptx::Barrier delta_empty[kDeltaStages];  // compute warps (8) -> load: it is read
  ptx::Barrier s_full;   // commit of S (1) -> compute: S is there; kAliased: the P before is read
  ptx::Barrier s_empty;  // compute warps (8) -> multiply: S is in registers. kSplit only
  ptx::Barrier p_full;   // compute warps (8) -> multiply: P is stored; kAliased: S is read
  ptx::Barrier p_empty;  // commit of dV (1) -> compute: P is read. kSplit only
  ptx::Barrier dp_full;  // commit of dP (1) -> compute: dP is there; dK and dQ before it are done, dS is read
  ptx::Barrier ds_full;  // compute warps (8) -> multiply: dS is stored in both memories, dP is read
  ptx::Barrier dq_full;  // commit of dQ (1) -> reduce: dQ is there
  ptx::Barrier dq_empty;  // reduce warps (4) -> multiply: dQ is in registers, dP may overwrite it
  ptx::Barrier dv_full;   // commit of the last dV (1) -> compute: dV is final
  ptx::Barrier dk_full;   // commit of the last dK (1) -> compute: dK is final

  std::uint32_t tensor_memory;  // address of column 0, written by its allocation
  Work work;
};
static_assert(sizeof(SharedMemory<128>) <= 232448);  // what a CTA may have

inline constexpr std::uint32_t kSlabBytes = QueryTile::kBytes;
inline constexpr std::uint32_t kRowsBytes = kQueryRows * sizeof(float);  // of lse or delta
inline constexpr std::uint32_t kDqBlockBytes = kQueryRows * kBlockColumns * sizeof(float);
inline constexpr std::uint32_t kStagedBytes = kKeyRows * kBlockColumns * 2;  // 32 columns of dK or dV
static_assert(KeyTile::kBytes == kSlabBytes && 2 * kStagedBytes == kSlabBytes);
static_assert(kKeyRows == kQueryRows && kDqBlockBytes == kSlabBytes);  // 32 columns in fp32 fill a slab
static_assert(shared::kDqTileRows == kQueryRows);

// Where 32 columns of dK or dV are staged for the store: rows of 64 bytes, 64-byte swizzle.
constexpr std::uint32_t staged_chunk(int key, int index) {
  return tile::swizzle64((key * kBlockChunks + index) * tile::kChunkBytes);
}

// Dynamic shared memory of a launch.
constexpr std::uint32_t shared_bytes(int head_dim) {
  return head_dim == 64 ? sizeof(SharedMemory<64>) : sizeof(SharedMemory<128>);
}

}  // namespace flashback::sm100::backward
