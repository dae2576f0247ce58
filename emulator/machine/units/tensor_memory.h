// The tensor memory of a CTA: 512 columns of 128 lanes of 32 bits. Stored column by column, so that
// tcgen05.ld and .st of the shape 32x32b are copies of 32 neighbouring words a column, and the tensor core
// vectorises over lanes.
#pragma once

#include <cstdint>
#include <memory>

#include "emulator/program/program.h"

namespace flashback::emulator {

class Warp;

class TensorMemory {
 public:
  static constexpr std::uint32_t kColumns = 512, kLanes = 128;
  static constexpr std::uint32_t kUnit = 32;  // columns are allocated in multiples of this
  using Column = std::uint32_t[kLanes];

  // All columns free, whatever they hold.
  void reset();
  // First column, or kColumns when no aligned run of `columns` is free. New columns hold 0xff bytes (NaN).
  std::uint32_t allocate(std::uint32_t columns);
  // The same columns in both; kColumns when no run is free in both.
  static std::uint32_t allocate_in_both(TensorMemory& one, TensorMemory& other, std::uint32_t columns);
  // False when one of them is not allocated.
  bool release(std::uint32_t first, std::uint32_t columns);
  bool allocated(std::uint32_t first, std::uint32_t columns) const;
  std::uint32_t columns_in_use() const;

  bool relinquished = false;  // no further allocation by this CTA
  // .cta_group of the CTA's first allocation, which all of its tcgen05 must have; 0 before.
  int group = 0;

  // What a warp asks for together with one of the pair's other CTA (cta_pair.h).
  struct PairRequest {
    enum class Kind : std::uint8_t { kNone, kAllocate, kRelease };
    Kind kind = Kind::kNone;
    int warp = 0;
    std::uint32_t columns = 0, first = 0;
    bool granted = false;  // both have asked; this one is still to learn it
  };
  PairRequest pair_request;

  Column* column(std::uint32_t c) { return columns_.get() + c; }

 private:
  static std::uint32_t units_of(std::uint32_t first, std::uint32_t columns);
  void take(std::uint32_t first, std::uint32_t columns);

  struct Free {
    void operator()(Column* columns) const;
  };
  std::unique_ptr<Column[], Free> columns_;  // made at the first allocation
  std::uint32_t used_ = 0;                   // bit u: columns 32u to 32u+31
};

// tcgen05.ld takes effect when one of its registers is used, at the latest: compiled programs rely on that.
void complete_loads_used_by(Warp& warp, const Step& step);
// The newest one takes effect now.
void copy_newest_load(Warp& warp);
void complete_all_loads(Warp& warp);
void complete_all_stores(Warp& warp);

}  // namespace flashback::emulator
