// What a program may touch as global memory: ranges of host memory.
#pragma once

#include <cstddef>

#include "device/device.h"

namespace flashback::emulator {

class GlobalMemory {
 public:
  struct Range {
    Address begin = 0, end = 0;
    std::size_t bytes() const { return end - begin; }
    bool holds(Address address, std::size_t bytes) const {
      return address >= begin && bytes <= end - begin && address - begin <= end - begin - bytes;
    }
  };

  virtual ~GlobalMemory() = default;
  // The registered range that holds the byte at `address`; an empty one when none does.
  virtual Range range_of(Address address) const = 0;
  // True when [address, address + bytes) lies within one registered range.
  bool contains(Address address, std::size_t bytes) const { return range_of(address).holds(address, bytes); }
};

}  // namespace flashback::emulator
