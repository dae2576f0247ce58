// What happened last to each piece of memory: 32 bytes of shared or global memory, or 32 lanes of a column of
// tensor memory. Bit i of a `part` is byte or lane i of the piece.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/check/clock.h"

namespace flashback::emulator::checking {

inline constexpr std::uint32_t kPieceBytes = 32;

// An access that others may have to be ordered against: lanes of a warp at a time of it, or an operation.
struct Record {
  const Step* step = nullptr;
  std::uint64_t cta = 0;        // whose; its number in the launch
  std::uint32_t operation = 0;  // 1 + its place among the CTA's; 0: the lanes themselves
  Agent first = 0;
  LaneMask lanes = 0;
  Time time = 0;
  std::uint32_t part = 0;
  bool strong = false;  // does not race with other strong ones
  bool sums_floats = false;
};

struct Piece {
  std::vector<Record> writes, reads;
  std::uint32_t written = 0;    // parts that hold a value
  std::uint32_t mbarriers = 0;  // bytes of mbarriers in use

  void clear() {
    writes.clear();
    reads.clear();
    written = mbarriers = 0;
  }
};

// Global memory, of which few parts are touched.
class GlobalShadow {
 public:
  Piece& at(std::uint64_t piece) {
    const std::uint64_t page = piece / kPagePieces;
    if (page != page_ || pieces_ == nullptr) {
      std::unique_ptr<Piece[]>& pieces = pages_[page];
      if (pieces == nullptr) pieces = std::make_unique<Piece[]>(kPagePieces);
      page_ = page;
      pieces_ = pieces.get();
    }
    return pieces_[piece % kPagePieces];
  }
  void clear() {
    pages_.clear();
    pieces_ = nullptr;
  }

 private:
  static constexpr std::uint64_t kPagePieces = 128;
  std::unordered_map<std::uint64_t, std::unique_ptr<Piece[]>> pages_;
  std::uint64_t page_ = 0;  // the one used last
  Piece* pieces_ = nullptr;
};

}  // namespace flashback::emulator::checking
