#include "emulator/machine/execute/addresses.h"

#include <fmt/format.h>

#include "emulator/machine/cluster.h"

namespace flashback::emulator {
namespace {

template <class F>
void each(LaneMask mask, F&& f) {
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) f(std::countr_zero(rest));
}

[[noreturn]] void out_of_bounds(const Warp& warp, const Step& step, int lane, std::uint64_t address,
                                std::uint32_t bytes, const std::string& rule) {
  warp.fault(step, fmt::format("lane {} accesses {} bytes at {:#x}; {}", lane, bytes, address, rule),
             FaultKind::kIllegalAddress);
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

// Whether the opcode has the state space .shared::cluster. Asked only where an address is not the CTA's own.
bool names_cluster(const Warp& warp, const Step& step) {
  return warp.cta().launch().program->forms[step.form].find(".shared::cluster") != std::string::npos;
}

// Addresses in the shared memory of any CTA of the cluster.
std::byte* check_cluster(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                         std::uint32_t bytes, LaneMask mask) {
  Cta& cta = warp.cta();
  each(mask, [&](int l) {
    if (at[l] > 0xffffffffu) out_of_bounds(warp, step, l, at[l], bytes, "a shared address has 32 bits");
    const auto address = static_cast<std::uint32_t>(at[l]);
    if (cta.cluster_holds(address, bytes)) return;
    cta.cluster_shared(address, bytes, fmt::format("lane {}: an access", l).c_str());  // says what is wrong
  });
  return cta.shared(static_cast<std::uint32_t>(span.lowest));
}

}  // namespace

void check_alignment(const Warp& warp, const Step& step, const std::uint64_t* at, std::uint32_t bytes,
                     LaneMask mask) {
  each(mask, [&](int l) {
    if (at[l] % bytes == 0) return;
    warp.fault(step,
               fmt::format("lane {} accesses {} bytes at {:#x}, which is not a multiple of {}", l, bytes,
                           at[l], bytes),
               FaultKind::kMisalignedAddress);
  });
}

std::byte* check_shared(Warp& warp, const Step& step, const std::uint64_t* at, const Span& span,
                        std::uint32_t bytes, LaneMask mask) {
  Cta& cta = warp.cta();
  if (span.lowest >= cta.shared_begin() && span.highest + bytes <= cta.shared_end()) [[likely]] {
    return cta.shared(static_cast<std::uint32_t>(span.lowest));
  }
  if (names_cluster(warp, step)) return check_cluster(warp, step, at, span, bytes, mask);
  each(mask, [&](int l) {
    if (at[l] >= cta.shared_begin() && at[l] + bytes <= cta.shared_end()) return;
    out_of_bounds(
        warp, step, l, at[l], bytes,
        fmt::format("the CTA's shared memory is {:#x} to {:#x}", cta.shared_begin(), cta.shared_end()));
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
    if (moved.lowest >= cta.shared_begin() && moved.highest + bytes <= cta.shared_end()) [[likely]] {
      return cta.shared(static_cast<std::uint32_t>(moved.lowest));
    }
    return check_cluster(warp, step, in_window, moved, bytes, mask);
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

namespace {

// Of shared memory, owner by owner.
void tell_shared(Warp& warp, const Step& step, LaneAccess access) {
  Cta& cta = warp.cta();
  std::uint64_t in_owner[32];
  std::uint32_t owners = 0;
  each(access.lanes, [&](int l) {
    const auto address = static_cast<std::uint32_t>(access.addresses[l]);
    owners |= 1u << rank_of(address);
    in_owner[l] = on_rank(address, 0);
  });
  for (; owners != 0; owners &= owners - 1) {
    const auto rank = static_cast<std::uint32_t>(std::countr_zero(owners));
    LaneAccess part = access;
    part.owner = &cta.cluster().cta(rank);
    part.addresses = in_owner;
    each(access.lanes, [&](int l) {
      if (rank_of(static_cast<std::uint32_t>(access.addresses[l])) != rank) part.lanes &= ~(LaneMask{1} << l);
    });
    cta.observer()->accessed(warp, step, part);
  }
}

}  // namespace

void tell_access(Warp& warp, const Step& step, MemorySpace space, const std::uint64_t* at,
                 std::uint32_t bytes, LaneMask mask, Use use) {
  LaneAccess access;
  access.use = use;
  access.lanes = mask;
  access.bytes = bytes;
  access.addresses = at;
  const std::uint64_t first = at[std::countr_zero(mask)];
  switch (space) {
    case MemorySpace::kShared:
      return tell_shared(warp, step, access);
    case MemorySpace::kGeneric:
      if (in_shared_window(first)) return tell_shared(warp, step, access);
      if (warp.local_holds(first, bytes) || is_parameter(warp, first, bytes)) return;
      [[fallthrough]];
    case MemorySpace::kGlobal:
      return warp.cta().observer()->accessed(warp, step, access);
    default:
      return;
  }
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
