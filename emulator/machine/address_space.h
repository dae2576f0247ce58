// Where the address spaces lie. Global, parameter and local memory are host memory, so their generic
// addresses are the host's. Shared addresses have 32 bits: the top eight are the rank of the CTA in its
// cluster, as on hardware, so that a CTA's own addresses name it to its peers too. Their generic form lies in
// a window above every host address.
#pragma once

#include <cstdint>

namespace flashback::emulator {

// Most CTAs of a cluster.
inline constexpr std::uint32_t kMostRanks = 16;
inline constexpr int kRankShift = 24;
constexpr std::uint32_t rank_of(std::uint32_t shared_address) {
  return shared_address >> kRankShift;
}
// The address with the same offset in the shared memory of CTA `rank`.
constexpr std::uint32_t on_rank(std::uint32_t shared_address, std::uint32_t rank) {
  return (shared_address & ((1u << kRankShift) - 1)) | rank << kRankShift;
}

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
