#include "emulator/machine/execute/addresses.h"

#include <fmt/format.h>

namespace flashback::emulator {
namespace {

template <class F>
void each(LaneMask mask, F&& f) {
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) f(std::countr_zero(rest));
}

[[noreturn]] void out_of_bounds(const Warp& warp, const Step& step, int lane, std::uint64_t address,
                                std::uint32_t bytes, const std::string& rule) {
  warp.fault(step, fmt::format("lane {} accesses {} bytes at {:#x}; {}", lane, bytes, address, rule));
}

bool is_parameter(const Warp& warp, std::uint64_t address, std::size_t bytes) {
  const LaunchState& launch = warp.cta().launch();
  const auto begin = reinterpret_cast<std::uintptr_t>(launch.parameters);
  const std::size_t size = launch.program->parameter_bytes;
  return address >= begin && bytes <= size && address - begin <= size - bytes;
}

std::byte* host(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace

void check_alignment(const Warp& warp, const Step& step, const std::uint64_t* at, std::uint32_t bytes,
                     LaneMask mask) {
  each(mask, [&](int l) {
    if (at[l] % bytes == 0) return;
    warp.fault(step, fmt::format("lane {} accesses {} bytes at {:#x}, which is not a multiple of {}", l,
                                 bytes, at[l], bytes));
  });
}

std::byte* check_shared(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                        std::uint32_t bytes, LaneMask mask) {
  Cta& cta = warp.cta();
  if (span.lowest >= kSharedBase && span.highest + bytes <= cta.shared_end()) [[likely]] {
    return cta.shared(static_cast<std::uint32_t>(span.lowest));
  }
  each(mask, [&](int l) {
    if (at[l] >= kSharedBase && at[l] + bytes <= cta.shared_end()) return;
    out_of_bounds(warp, step, l, at[l], bytes,
                  fmt::format("the CTA's shared memory is {:#x} to {:#x}", kSharedBase, cta.shared_end()));
  });
  return nullptr;
}

std::byte* check_global(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                        std::uint32_t bytes, LaneMask mask) {
  Cta& cta = warp.cta();
  if (!cta.global_holds(span.lowest, span.highest - span.lowest + bytes)) {
    each(mask, [&](int l) {
      if (cta.global_holds(at[l], bytes)) return;
      out_of_bounds(warp, step, l, at[l], bytes, "no allocation holds them");
    });
  }
  cta.settle_reductions(span.lowest, span.highest - span.lowest + bytes);
  return host(span.lowest);
}

std::byte* check_local(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                       std::uint32_t bytes, LaneMask mask) {
  each(mask, [&](int l) {
    if (!warp.local_holds(at[l], bytes)) {
      out_of_bounds(warp, step, l, at[l], bytes,
                    fmt::format("its local memory has {} bytes", warp.cta().launch().program->local_bytes));
    }
  });
  return host(span.lowest);
}

std::byte* check_parameter(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                           std::uint32_t bytes, LaneMask mask) {
  if (!is_parameter(warp, span.lowest, span.highest - span.lowest + bytes)) {
    const LaunchState& launch = warp.cta().launch();
    const auto begin = reinterpret_cast<std::uintptr_t>(launch.parameters);
    each(mask, [&](int l) {
      // Those of a call lie in the lane's own memory.
      if (is_parameter(warp, at[l], bytes) || warp.local_holds(at[l], bytes)) return;
      out_of_bounds(warp, step, l, at[l], bytes,
                    fmt::format("that is offset {} of {} bytes of parameters",
                                static_cast<std::int64_t>(at[l] - begin), launch.program->parameter_bytes));
    });
  }
  return host(span.lowest);
}

std::byte* check_generic(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                         std::uint32_t bytes, LaneMask mask) {
  Cta& cta = warp.cta();
  if (in_shared_window(span.lowest)) {
    std::uint64_t in_window[32];
    each(mask, [&](int l) { in_window[l] = at[l] - kSharedWindow; });
    Span moved = span;
    moved.lowest -= kSharedWindow;
    moved.highest -= kSharedWindow;
    return check_shared(warp, step, in_window, moved, bytes, mask);
  }
  if (!cta.global_holds(span.lowest, span.highest - span.lowest + bytes)) {
    each(mask, [&](int l) {
      if (cta.global_holds(at[l], bytes) || warp.local_holds(at[l], bytes) ||
          is_parameter(warp, at[l], bytes))
        return;
      out_of_bounds(warp, step, l, at[l], bytes,
                    "no allocation holds them, nor shared, local or parameter memory");
    });
  }
  cta.settle_reductions(span.lowest, span.highest - span.lowest + bytes);
  return host(span.lowest);
}

void tell_access(Warp& warp, const Step& step, MemorySpace space, const std::uint64_t* at,
                 std::uint32_t bytes, LaneMask mask, Use use) {
  Cta& cta = warp.cta();
  LaneAccess access;
  access.use = use;
  access.lanes = mask;
  access.bytes = bytes;
  access.addresses = at;
  std::uint64_t in_window[32];
  if (space == MemorySpace::kShared) {
    access.owner = &cta;
  } else if (space == MemorySpace::kGeneric) {
    const std::uint64_t first = at[std::countr_zero(mask)];
    if (in_shared_window(first)) {
      access.owner = &cta;
      each(mask, [&](int l) { in_window[l] = at[l] - kSharedWindow; });
      access.addresses = in_window;
    } else if (warp.local_holds(first, bytes) || is_parameter(warp, first, bytes)) {
      return;
    }
  } else if (space != MemorySpace::kGlobal) {
    return;
  }
  cta.observer()->accessed(warp, step, access);
}

const std::byte* readable(Warp& warp, const Step& step, int lane, std::uint64_t address,
                          std::uint32_t bytes) {
  std::uint64_t at[32];
  at[lane] = address;
  return check_generic(warp, step, at, {address, address, address, false, false}, bytes, LaneMask{1} << lane);
}

bool is_mixed(const Warp& warp, const Step& step, LaneMask mask) {
  const std::uint64_t* address = warp.lanes<std::uint64_t>(step.a);
  LaneMask shared = 0;
  each(mask, [&](int l) {
    shared |= LaneMask{in_shared_window(address[l] + static_cast<std::uint64_t>(step.immediate))} << l;
  });
  return shared != 0 && shared != mask;
}

}  // namespace flashback::emulator
