// A bulk copy between global and shared memory, or from shared memory to a peer's, as it was issued: plain
// bytes or the box of a tensor map.
#pragma once

#include <cstdint>

#include "emulator/machine/address_space.h"
#include "emulator/machine/units/tensor_map.h"
#include "emulator/program/program.h"

namespace flashback::emulator {

class Cta;

// Who issued a piece of asynchronous work: for messages, and for groups, which are a thread's own.
struct Issuer {
  const Step* step = nullptr;
  std::uint8_t warp = 0, lane = 0;
  std::uint64_t operation = 0;  // its number, for the observer
};

struct Transfer {
  enum class Kind : std::uint8_t {
    kLoad,    // global to shared; then complete_tx on the mbarrier
    kStore,   // shared to global
    kReduce,  // shared added to global, fp32
    kToPeer,  // shared to shared of another CTA; then complete_tx on an mbarrier there
  };
  Issuer by;
  Kind kind = Kind::kLoad;
  bool tiled = false;
  std::uint32_t shared = 0;
  std::uint32_t bytes = 0;     // of plain bytes
  std::uint32_t mbarrier = 0;  // of a load, and of a copy to a peer
  // Of a load with .multicast::cluster: bit r is CTA rank r, which gets data and signal at the same offsets.
  // 0 without: the addresses say which CTA.
  std::uint16_t ranks = 0;
  bool signals_pair = false;  // .cta_group::2: the mbarrier may be in the other CTA of the destination's pair
  std::uint32_t peer = 0;     // destination of a copy to a peer
  std::uint32_t group = 0;    // of a store or reduction: its place among the thread's bulk groups
  Address global = 0;         // of plain bytes
  TensorMap map = {};         // of a box
  std::int32_t coordinates[5] = {};
};

struct MbarrierUser;
MbarrierUser user_of(Cta& cta, const Issuer& by);

// Whether it ends with complete_tx on an mbarrier; else it belongs to a bulk group.
inline bool signals_mbarrier(Transfer::Kind kind) {
  return kind == Transfer::Kind::kLoad || kind == Transfer::Kind::kToPeer;
}

// Calls f(shared address, mbarrier) for each CTA that a load writes to. In a pair the signal goes to the CTA
// whose rank is as odd or even as that of the named mbarrier.
template <class F>
void each_destination(const Transfer& load, F&& f) {
  if (load.ranks == 0) return f(load.shared, load.mbarrier);
  for (std::uint32_t rest = load.ranks; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint32_t>(__builtin_ctz(rest));
    const std::uint32_t signal = load.signals_pair ? (rank & ~1u) | (rank_of(load.mbarrier) & 1) : rank;
    f(on_rank(load.shared, rank), on_rank(load.mbarrier, signal));
  }
}

// Checks of the issue: alignment, ranges, the map. Throws Misuse.
void check(Cta& cta, const Transfer& transfer);
// The transfer takes effect.
void perform(Cta& cta, const Transfer& transfer);

// tensor_copy.cpp: the same for boxes, whose place in shared memory is `shared`.
void check_box(const Transfer& transfer);
void copy_box(Cta& cta, const Transfer& transfer, std::uint32_t shared);

}  // namespace flashback::emulator
