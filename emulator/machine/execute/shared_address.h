// Addresses of objects in shared memory, as asynchronous instructions take them: one a lane.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "emulator/machine/address_space.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/warp.h"

namespace flashback::emulator {

// Width: type of the address register. A generic address is one of the shared window.
template <class Width>
std::uint32_t shared_address(const Warp& warp, const Step& step, Slot slot, std::int64_t displacement,
                             int lane) {
  std::uint64_t address =
      static_cast<Width>(warp.lanes<Width>(slot)[lane] + static_cast<Width>(displacement));
  if (in_shared_window(address)) address -= kSharedWindow;
  if (address > 0xffffffffu)
    warp.fault(step, fmt::format("lane {} names {:#x}, which is no shared address", lane, address));
  return static_cast<std::uint32_t>(address);
}

// Whose shared memory an instruction may reach.
enum class Reach { kCta, kCluster };

// The `bytes` of an object, aligned to its size.
template <class Width, Reach reach = Reach::kCta>
std::byte* shared_object(Warp& warp, const Step& step, Slot slot, std::int64_t displacement, int lane,
                         std::uint32_t bytes, const char* what) {
  const std::uint32_t address = shared_address<Width>(warp, step, slot, displacement, lane);
  if (address % bytes != 0) {
    warp.fault(
        step, fmt::format("{} at shared address {:#x}, which is not a multiple of {}", what, address, bytes));
  }
  if constexpr (reach == Reach::kCluster) return warp.cta().cluster_shared(address, bytes, what);
  return warp.cta().shared(address, bytes, what);
}

}  // namespace flashback::emulator
