// The addresses of a memory instruction: checked once for all lanes, with the host memory behind them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "emulator/machine/address_space.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/observer.h"
#include "emulator/machine/warp.h"

namespace flashback::emulator {

enum class MemorySpace { kGeneric, kGlobal, kShared, kLocal, kParameter };

// How the addresses of the executing lanes lie to each other: all the same; of a full warp, one after the
// other.
enum class Pattern { kUniform, kConsecutive, kScattered };

// Lane l accesses the host memory at base + offset[l].
struct Access {
  std::byte* base;
  std::uint64_t offset[32];
  Pattern pattern;
};

// What the addresses of a warp instruction span.
struct Span {
  std::uint64_t lowest, highest;
  std::uint64_t bits;  // of all addresses, for alignment
  bool uniform, consecutive;
};

// Places of checked memory. Each faults at the first lane whose access is misaligned or lies where the CTA
// may not go.
std::byte* check_shared(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                        std::uint32_t bytes, LaneMask mask);
std::byte* check_global(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                        std::uint32_t bytes, LaneMask mask);
std::byte* check_local(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                       std::uint32_t bytes, LaneMask mask);
std::byte* check_parameter(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                           std::uint32_t bytes, LaneMask mask);
std::byte* check_generic(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                         std::uint32_t bytes, LaneMask mask);
void check_alignment(const Warp& warp, const Step& step, const std::uint64_t* at, std::uint32_t bytes,
                     LaneMask mask);

// Tells the observer of a checked access; of parameters and of memory that is a lane's own there is nothing
// to tell.
void tell_access(Warp& warp, const Step& step, MemorySpace space, const std::uint64_t* at,
                 std::uint32_t bytes, LaneMask mask, Use use);

// What one lane may read at a generic address.
const std::byte* readable(Warp& warp, const Step& step, int lane, std::uint64_t address, std::uint32_t bytes);

// The `bytes` that each lane accesses at the address register step.a plus the displacement. Width: type of
// the register. In generic space all lanes must be in the same window; `is_mixed` tells beforehand.
template <MemorySpace space, class Width>
inline Access resolve(Warp& warp, const Step& step, std::uint32_t bytes, LaneMask mask, Use use) {
  Access access;
  std::uint64_t* at = access.offset;
  const Width* address = warp.lanes<Width>(step.a);
  const Width displacement = static_cast<Width>(step.immediate);
  Span span;
  if (mask == kAllLanes) {
    const Width first = address[0] + displacement;
    Width lowest = first, highest = first, bits = 0, differs = 0, skips = 0;
    for (int l = 0; l < 32; ++l) {
      const Width a = address[l] + displacement;
      at[l] = a;
      lowest = std::min(lowest, a);
      highest = std::max(highest, a);
      bits |= a;
      differs |= a ^ first;
      skips |= (a - first) ^ static_cast<Width>(static_cast<std::uint32_t>(l) * bytes);
    }
    span = {lowest, highest, bits, differs == 0, skips == 0};
  } else {
    span = {~std::uint64_t{0}, 0, 0, false, false};
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      const Width a = address[l] + displacement;
      at[l] = a;
      span.lowest = std::min<std::uint64_t>(span.lowest, a);
      span.highest = std::max<std::uint64_t>(span.highest, a);
      span.bits |= a;
    }
    span.uniform = span.lowest == span.highest;
  }
  if ((span.bits & (bytes - 1)) != 0) check_alignment(warp, step, at, bytes, mask);
  if constexpr (space == MemorySpace::kShared) access.base = check_shared(warp, step, at, span, bytes, mask);
  if constexpr (space == MemorySpace::kGlobal) access.base = check_global(warp, step, at, span, bytes, mask);
  if constexpr (space == MemorySpace::kLocal) access.base = check_local(warp, step, at, span, bytes, mask);
  if constexpr (space == MemorySpace::kParameter)
    access.base = check_parameter(warp, step, at, span, bytes, mask);
  if constexpr (space == MemorySpace::kGeneric)
    access.base = check_generic(warp, step, at, span, bytes, mask);
  if (warp.cta().observer() != nullptr) [[unlikely]]
    tell_access(warp, step, space, at, bytes, mask, use);
  access.pattern = span.uniform       ? Pattern::kUniform
                   : span.consecutive ? Pattern::kConsecutive
                                      : Pattern::kScattered;
  for (int l = 0; l < 32; ++l) at[l] -= span.lowest;
  return access;
}

// Whether some lanes point into the shared window and others not.
bool is_mixed(const Warp& warp, const Step& step, LaneMask mask);

}  // namespace flashback::emulator
