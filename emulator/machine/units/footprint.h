// What an operation accesses, as the observer is told.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/cta.h"
#include "emulator/machine/observer.h"
#include "emulator/machine/units/operand_descriptor.h"

namespace flashback::emulator {

// Ranges of one space under one use; those that meet become one.
class Footprint {
 public:
  void add(std::uint64_t begin, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (!ranges_.empty() && ranges_.back().begin + ranges_.back().bytes == begin) {
      ranges_.back().bytes += bytes;
    } else {
      ranges_.push_back({begin, bytes});
    }
  }
  // The chunks of an operand, line by line. Within a line a swizzle exchanges neighbours.
  void add_operand(const OperandDescriptor& descriptor, bool mn_major, int lines, int chunks);
  // `owner`: of shared memory; null: global memory.
  void tell(Observer& observer, std::uint64_t operation, const Cta* owner, Use use,
            LaneMask lanes = kAllLanes) {
    if (!ranges_.empty()) observer.accessed(OperationAccess{operation, owner, use, ranges_, lanes});
    ranges_.clear();
  }

 private:
  std::vector<ByteRange> ranges_;
};

// Number of an operation that is issued now; 0 when nobody watches.
inline std::uint64_t announce(const Warp& warp, const Step& step, LaneMask lanes, Operation::Kind kind,
                              std::uint32_t bytes = 0, const Cta* mbarrier_owner = nullptr,
                              std::uint32_t mbarrier = 0) {
  Observer* observer = warp.cta().observer();
  if (observer == nullptr) [[likely]]
    return 0;
  const std::uint64_t number = observer->next_operation();
  observer->issued({number, kind, &warp, &step, lanes, bytes, mbarrier_owner, mbarrier});
  return number;
}

}  // namespace flashback::emulator
