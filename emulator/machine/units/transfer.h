// A bulk copy between global and shared memory, as it was issued: plain bytes or the box of a tensor map.
#pragma once

#include <cstdint>

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
  };
  Issuer by;
  Kind kind = Kind::kLoad;
  bool tiled = false;
  std::uint32_t shared = 0;
  std::uint32_t bytes = 0;     // of plain bytes
  std::uint32_t mbarrier = 0;  // of a load
  std::uint32_t group = 0;     // of a store or reduction: its place among the thread's bulk groups
  Address global = 0;          // of plain bytes
  TensorMap map = {};          // of a box
  std::int32_t coordinates[5] = {};
};

struct MbarrierUser;
MbarrierUser user_of(Cta& cta, const Issuer& by);

// Checks of the issue: alignment, ranges, the map. Throws Misuse.
void check(Cta& cta, const Transfer& transfer);
// The transfer takes effect.
void perform(Cta& cta, const Transfer& transfer);

// tensor_copy.cpp: the same for boxes.
void check_box(Cta& cta, const Transfer& transfer);
void copy_box(Cta& cta, const Transfer& transfer);

}  // namespace flashback::emulator
