// The tensor memory of a CTA: 512 columns of 128 lanes of 32 bits. Stored column by column, so that
// tcgen05.ld and .st of the shape 32x32b are copies of 32 neighbouring words a column, and the tensor core
// vectorises over lanes.
#pragma once

#include <cstdint>
#include <memory>

#include "emulator/program/program.h"

namespace flashback::emulator {

class Warp;

// Which cells the registers of a tcgen05.ld or .st are, over the 32 threads of a warp.
enum class TensorShape : std::uint8_t { k32x32b, k16x32bx2, k16x64b, k16x128b, k16x256b };

struct TensorAccess {
  TensorShape shape = TensorShape::k32x32b;
  bool packs = false;  // .pack::16b, .unpack::16b: a register is the low halves of two neighbouring columns
  std::uint32_t lane = 0;    // the first
  std::uint32_t column = 0;  // the first
  std::uint32_t half = 0;    // of 16x32bx2: how many columns further its second half is

  // Columns that one half spans (of 16x32bx2; there is one part otherwise).
  std::uint32_t columns(std::uint32_t registers) const;
  std::uint32_t lanes() const { return shape == TensorShape::k32x32b ? 32 : 16; }
};

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
  // Whether each of them is the CTA's or was: freed columns keep what they hold until they are allocated
  // again, and programs that are right on hardware free them under a last load of another warp.
  bool reachable(std::uint32_t first, std::uint32_t columns) const { return all(reachable_, first, columns); }
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

  // Register number `j` of an access, of 32 threads.
  void load(const TensorAccess& access, std::uint32_t j, std::uint32_t* values);
  void store(const TensorAccess& access, std::uint32_t j, const std::uint32_t* values);

 private:
  static bool all(std::uint32_t units, std::uint32_t first, std::uint32_t columns);
  static std::uint32_t units_of(std::uint32_t first, std::uint32_t columns);
  void take(std::uint32_t first, std::uint32_t columns);

  struct Free {
    void operator()(Column* columns) const;
  };
  std::unique_ptr<Column[], Free> columns_;  // made at the first allocation
  std::uint32_t used_ = 0;                   // bit u: columns 32u to 32u+31
  std::uint32_t reachable_ = 0;              // likewise, those that have been used
};

// tcgen05.ld takes effect when one of its registers is used, at the latest: compiled programs rely on that.
void complete_loads_used_by(Warp& warp, const Step& step);
// The newest one takes effect now.
void copy_newest_load(Warp& warp);
void complete_all_loads(Warp& warp);
void complete_all_stores(Warp& warp);

}  // namespace flashback::emulator
