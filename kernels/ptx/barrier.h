// The 64 bits of an mbarrier in shared memory. Plain C++, so that the host can lay out what the kernel uses.
#pragma once

#include <cstdint>

namespace flashback::ptx {

struct Barrier {
  std::uint64_t state;  // opaque: only mbarrier instructions touch it
};

}  // namespace flashback::ptx
