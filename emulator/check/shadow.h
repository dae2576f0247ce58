// What happened last to each piece of memory: 32 bytes of shared or global memory, or 32 lanes of a column of
// tensor memory. Bit i of a `part` is byte or lane i of the piece.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "emulator/check/clock.h"
#include "emulator/machine/observer.h"

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
  Operation::Kind kind = Operation::Kind::kBulkLoad;  // of the operation
};

// Nearly always one, which then lies beside the others of its kind: a walk over pieces is a walk through
// memory.
class Records {
 public:
  Record* begin() { return capacity_ == 1 ? &one_ : more_.get(); }
  Record* end() { return begin() + size_; }
  std::uint32_t size() const { return size_; }
  void clear() { size_ = 0; }
  void push_back(const Record& record) {
    if (size_ == capacity_) {
      auto larger = std::make_unique<Record[]>(4 * capacity_);
      std::copy(begin(), end(), larger.get());
      more_ = std::move(larger);
      capacity_ *= 4;
    }
    begin()[size_++] = record;
  }
  template <class F>
  void erase_if(F&& f) {
    size_ = static_cast<std::uint32_t>(std::remove_if(begin(), end(), f) - begin());
  }

 private:
  std::uint32_t size_ = 0, capacity_ = 1;
  Record one_;
  std::unique_ptr<Record[]> more_;  // all of them, from the second on
};

struct Piece {
  Records writes, reads;
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
