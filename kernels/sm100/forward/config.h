// The map of the sm_100a forward kernel: what is configured, where everything lives, who signals whom. Plain
// C++: the host plans from this file, the kernel is compiled from it.
//
// One persistent CTA a multiprocessor takes work items from a counter until none is left. An item is two
// halves of 128 queries of one head, each with S, P and O in tensor memory and a softmax warpgroup of its
// own. The tiles of 128 keys that the queries see stream past, from the last one to the first; a half that
// does not see a tile is not worked on there.
//
// Time runs down; an arrow is a barrier of SharedMemory. Of a tile of keys t, each half h:
//
//   load (13)          multiply (12)            softmax h (0-3, 4-7)              correct (8-11)
//
//   Q once an item
//   K(t) --k_full-->   S = Q K(t)^T             --s_full-->  S in registers
//                      (S of a later tile)      <-s_empty--
//                                               m, factor    --stats_full-->      O *= factor, seldom
//                                               P = exp2(S * scale_log2 - m)
//   V(t) --v_full-->   O += P V(t)              <-p_full---  P stored
//                           <----------------------------------o_ready---         O may be added to
//                           ---o_full----------------------------------->         O is added to; P apart:
//                                               <---                              P is read
//   ... and after the item's first tile of keys
//                                               sum, m       --stats_full-->      O / sum and lse to global
//                           <----------------------------------o_ready---         memory; O is read
//
// The halves take turns by themselves: while one's products run the other's exponentials do.
//
// m lags behind the largest score by up to kLag: the weights may grow to 2^kLag and nothing is lost, as O and
// the sum are relative to the same m. Only a score above that makes a new m, and O is multiplied in tensor
// memory by the correct warps, which for most tiles have nothing to do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/forward.h"
#include "kernels/ptx/barrier.h"
#include "kernels/shared/dtype.h"
#include "kernels/tile/columns.h"
#include "kernels/tile/operand.h"

namespace flashback::sm100::forward {

using shared::Dtype;
using shared::Mask;
using Parameters = common::ForwardParameters;

struct Config {
  int head_dim;  // 64 or 128
  Dtype dtype;   // changes meaning
  Mask mask;     // changes meaning

  // Slabs of 64 channels, side by side.
  constexpr int slabs() const { return head_dim / tile::kRowElements; }
  // P has tensor memory of its own: S of the next tile may be computed while P is. Else P lies over S, and S
  // of the next tile waits for the product that reads P.
  constexpr bool p_apart() const { return head_dim == 64; }
  // How many tiles S runs ahead of P V: with P apart one is with the softmax while the next is computed.
  constexpr int lead() const { return p_apart() ? 2 : 1; }
  // Stages of the rings of Q, of K and of V.
  constexpr int query_stages() const { return head_dim == 64 ? 2 : 1; }
  constexpr int key_stages() const { return head_dim == 64 ? 4 : 2; }
};

// Tiles.
inline constexpr int kHalves = 2, kHalfRows = 128;  // lanes of tensor memory
inline constexpr int kQueryRows = kHalves * kHalfRows;
inline constexpr int kKeyRows = 128;

// By how much, as a power of two, weights may exceed 1.
inline constexpr float kLag = 8;

// Of four pairs of weights in a tile without mask one is computed on the FMA pipe: the special function unit
// (sixteen a cycle) then needs 768 cycles for a tile, the FMA pipe no more. Hidden scores are left to the
// former, whose 2^-inf is zero.
inline constexpr int kPairsByPolynomial = 4;

// Warps.
//
//   warps   role       registers a thread
//   0-3     softmax    184    S to P of queries 0-127
//   4-7     softmax    184    of queries 128-255
//   8-11    correct     80    O when m grows; at the end O and lse to global memory
//   12      multiply    64    issues every product; owns tensor memory
//   13      load        64    one thread: work, Q, K, V
//   14-15   none        64    complete the warpgroup: setmaxnreg is one value for all four
enum class Role { kSoftmax, kCorrect, kMultiply, kLoad, kNone };

inline constexpr int kThreads = 512;
inline constexpr int kGroupWarps = 4, kFirstCorrectWarp = kHalves * kGroupWarps;
inline constexpr int kMultiplyWarp = kFirstCorrectWarp + kGroupWarps, kLoadWarp = kMultiplyWarp + 1;
inline constexpr int kSoftmaxRegisters = 184, kCorrectRegisters = 80, kOtherRegisters = 64;
static_assert(128 * (2 * kSoftmaxRegisters + kCorrectRegisters + kOtherRegisters) <= 64 * 1024);

constexpr Role role_of(int warp) {
  return warp < kFirstCorrectWarp ? Role::kSoftmax
         : warp < kMultiplyWarp   ? Role::kCorrect
         : warp == kMultiplyWarp  ? Role::kMultiply
         : warp == kLoadWarp      ? Role::kLoad
                                  : Role::kNone;
}

// Tensor memory by columns: a lane is a query. P is 16-bit, two a column.
//
//              0        128       256       320       384       448       512
//   head 64    | S 0     | S 1     | O 0     | O 1     | P 0     | P 1     |
//   head 128   | S 0     | S 1     | O 0               | O 1               |
//              | P 0|    | P 1|
struct TensorColumns {
  tile::Columns s[kHalves], o[kHalves], p[kHalves];
};
constexpr TensorColumns tensor_columns(int head_dim) {
  const bool apart = Config{head_dim, Dtype::kBf16, Mask::kDense}.p_apart();
  TensorColumns c = {};
  int at = 0;
  const auto next = [&](int count) {
    at += count;
    return tile::Columns{at - count, count};
  };
  for (tile::Columns& s : c.s) s = next(kKeyRows);
  for (tile::Columns& o : c.o) o = next(head_dim);
  for (int half = 0; half < kHalves; ++half)
    c.p[half] = apart ? next(kKeyRows / 2) : tile::Columns{c.s[half].first, kKeyRows / 2};
  return c;
}
// A choice, not an index: some warps find out which half is theirs.
constexpr int first_column(const tile::Columns (&columns)[kHalves], int half) {
  return half == 0 ? columns[0].first : columns[1].first;
}
static_assert(tensor_columns(64).p[1].end() == tile::kTensorMemoryColumns);
static_assert(tensor_columns(128).o[1].end() == tile::kTensorMemoryColumns);

inline constexpr int kWorkStages = 3;

// What a ticket stands for: the queries, and the tiles of keys that each half of them sees. One thread finds
// it, all roles read it.
struct Work : common::Queries {
  shared::KeyTiles keys[kHalves];
  int begin, end;  // of both together

  constexpr shared::TileRange visited() const { return {begin, end}; }
};

using Slab = tile::OperandTile<kHalfRows>;  // of a half's queries, or of a tile of keys

template <Config config>
struct SharedMemory {
  static constexpr int kQStages = config.query_stages(), kStages = config.key_stages();
  static constexpr int kSlabs = config.slabs();
  using KeyTile = Slab[kSlabs];

  Slab q[kQStages][kSlabs][kHalves];
  KeyTile k[kStages], v[kStages];
  Slab o;  // 64 channels on their way out, each correct warp its own rows

  // Of a half, row by row: what O shrinks by, or at the end the sum and m.
  float factor[kHalves][kHalfRows], m[kHalves][kHalfRows];

  // Who arrives (how often a phase) -> who waits: what it says.
  ptx::Barrier work_full[kWorkStages];   // load (1) -> softmax, correct, multiply: the work is written
  ptx::Barrier work_empty[kWorkStages];  // their warps (13) -> load: they are done with it
  ptx::Barrier q_full[kQStages];         // load (1, bytes) -> multiply
  ptx::Barrier q_empty[kQStages];        // commit of the item's last S (1) -> load
  ptx::Barrier k_full[kStages];          // load (1, bytes) -> multiply
  ptx::Barrier k_empty[kStages];         // commit of S (1) -> load
  ptx::Barrier v_full[kStages];          // load (1, bytes) -> multiply
  ptx::Barrier v_empty[kStages];         // commit of P V (1) -> load
  ptx::Barrier s_full[kHalves];      // commit of S (1) -> softmax: S is there; P over S: the P before is read
  ptx::Barrier s_empty[kHalves];     // softmax warps (4) -> multiply: S is in registers. P apart only
  ptx::Barrier p_full[kHalves];      // softmax warps (4) -> multiply: P is stored; P over S: S is read
  ptx::Barrier stats_full[kHalves];  // softmax warps (4) -> correct: factor, or the sum and m, is written
  ptx::Barrier stats_empty[kHalves];  // correct warps (4) -> softmax: it is read
  ptx::Barrier o_ready[kHalves];  // correct warps (4) -> multiply: O is corrected, or it has left: add to it
  // Commit of P V (1) -> correct: O is added to. P apart: -> softmax: P is read.
  ptx::Barrier o_full[kHalves];
  ptx::Barrier done;  // commit of everything (1) -> multiply: nothing is under way when the CTA ends

  std::uint32_t tensor_memory;  // address of column 0, written by its allocation
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

}  // namespace flashback::sm100::forward
