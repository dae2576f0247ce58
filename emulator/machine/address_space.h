// Where the address spaces lie. Global, parameter and local memory are host memory, so their generic
// addresses are the host's. Shared addresses are small numbers; their generic form lies in a window above
// every host address.
#pragma once

#include <cstdint>

namespace flashback::emulator {

// A CTA's shared memory starts here: the first KiB belongs to the system, as on hardware.
inline constexpr std::uint32_t kSharedBase = 1024;
// Generic address of the shared address x: kSharedWindow + x.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 56;
// Largest static plus dynamic shared memory of a CTA, sm_90 and sm_100.
inline constexpr std::uint32_t kSharedLimit = 232448;

inline bool in_shared_window(std::uint64_t generic) {
  return generic >> 32 == kSharedWindow >> 32;
}

}  // namespace flashback::emulator
