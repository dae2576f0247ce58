// The wgmma of a warp, and the groups in which it waits for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flashback::emulator::timing {

struct ProductGroups {
  std::uint32_t products = 0;       // issued
  std::vector<std::uint32_t> ends;  // products issued when a group was committed

  void commit() { ends.push_back(products); }
  // How many products are over where no more than `pending` groups are left.
  std::uint32_t over(std::size_t pending) const {
    return ends.size() > pending ? ends[ends.size() - pending - 1] : 0;
  }
};

}  // namespace flashback::emulator::timing
