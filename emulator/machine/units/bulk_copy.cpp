// Bulk copies of plain bytes, and cp.async.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emulator/machine/cluster.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/machine/units/transfer.h"
#include "emulator/machine/units/work_queue.h"

namespace flashback::emulator {
namespace {

void require_multiple(std::uint64_t value, std::uint64_t unit, const char* what) {
  if (value % unit != 0)
    throw Misuse(fmt::format("{} is {:#x}, which is not a multiple of {}", what, value, unit),
                 FaultKind::kMisalignedAddress);
}

void check_bytes(Cta& cta, const Transfer& transfer) {
  require_multiple(transfer.bytes, 16, "the size of the bulk copy");
  require_multiple(transfer.shared, 16, "its shared address");
  if (transfer.kind == Transfer::Kind::kToPeer) {
    require_multiple(transfer.peer, 16, "its address in the peer");
    return;
  }
  require_multiple(transfer.global, 16, "its global address");
  if (!cta.global_holds(transfer.global, transfer.bytes)) {
    throw Misuse(fmt::format("a bulk copy of {} bytes at global address {:#x}; no allocation holds them",
                             transfer.bytes, transfer.global),
                 FaultKind::kIllegalAddress);
  }
}

std::uint32_t bytes_of(const Transfer& transfer) {
  return transfer.tiled ? transfer.map.box_bytes() : transfer.bytes;
}

const char* what(const Transfer& transfer) {
  return transfer.tiled ? "a box" : "a bulk copy";
}

void check_signal(Cta& cta, std::uint32_t data, std::uint32_t mbarrier, bool in_pair) {
  require_multiple(mbarrier, 8, "the address of its mbarrier");
  cta.cluster_shared(mbarrier, 8, "an mbarrier");
  const std::uint32_t to = rank_of(data), signals = rank_of(mbarrier);
  if (to == signals || (in_pair && (to ^ signals) == 1)) return;
  throw Misuse(fmt::format("the data goes to rank {} of the cluster and the mbarrier is in rank {}; {}", to,
                           signals,
                           in_pair ? "both must be in one pair of CTAs"
                                   : "both must be in one CTA (in one pair with .cta_group::2)"));
}

// At the issue, and again when it takes effect: a CTA may have exited meanwhile.
void check_destinations(Cta& cta, const Transfer& load) {
  each_destination(load, [&](std::uint32_t shared, std::uint32_t mbarrier) {
    cta.cluster_shared(shared, bytes_of(load), what(load));
    check_signal(cta, shared, mbarrier, load.signals_pair);
  });
}

Use use_of_global(Transfer::Kind kind) {
  return kind == Transfer::Kind::kLoad    ? Use::kRead
         : kind == Transfer::Kind::kStore ? Use::kWrite
                                          : Use::kReadWrite;
}

// Tells the observer of plain bytes at a shared address, and in global memory.
void tell_shared(Cta& cta, const Transfer& transfer, std::uint32_t address, Use use) {
  const ByteRange range{on_rank(address, 0), transfer.bytes};
  const Cta& owner = cta.cluster().cta(rank_of(address));
  cta.observer()->accessed(OperationAccess{transfer.by.operation, &owner, use, {&range, 1}});
}
void tell_global(Cta& cta, const Transfer& transfer) {
  const ByteRange range{transfer.global, transfer.bytes};
  cta.observer()->accessed(
      OperationAccess{transfer.by.operation, nullptr, use_of_global(transfer.kind), {&range, 1}});
}

void complete(Cta& cta, const Transfer& transfer, std::uint32_t mbarrier) {
  Cta& owner = cta.cluster().cta(rank_of(mbarrier));
  // The whole box counts, also what lies out of bounds.
  MbarrierAccess(owner, mbarrier, user_of(cta, transfer.by)).complete(bytes_of(transfer));
}

void load(Cta& cta, const Transfer& transfer) {
  check_destinations(cta, transfer);
  const bool observed = cta.observer() != nullptr;
  each_destination(transfer, [&](std::uint32_t shared, std::uint32_t) {
    if (transfer.tiled) return copy_box(cta, transfer, shared);
    if (observed) tell_shared(cta, transfer, shared, Use::kWrite);
    cta.settle_reductions(transfer.global, transfer.bytes);
    std::memcpy(cta.shared(shared), reinterpret_cast<const void*>(transfer.global), transfer.bytes);
  });
  if (observed) {
    if (!transfer.tiled) tell_global(cta, transfer);
    cta.observer()->ended(transfer.by.operation);
  }
  each_destination(transfer,
                   [&](std::uint32_t, std::uint32_t mbarrier) { complete(cta, transfer, mbarrier); });
}

void copy_to_peer(Cta& cta, const Transfer& transfer) {
  std::byte* to = cta.cluster_shared(transfer.peer, transfer.bytes, "a bulk copy");
  check_signal(cta, transfer.peer, transfer.mbarrier, false);
  std::memcpy(to, cta.shared(transfer.shared), transfer.bytes);
  if (cta.observer() != nullptr) [[unlikely]] {
    tell_shared(cta, transfer, transfer.shared, Use::kRead);
    tell_shared(cta, transfer, transfer.peer, Use::kWrite);
    cta.observer()->ended(transfer.by.operation);
  }
  complete(cta, transfer, transfer.mbarrier);
}

void store_bytes(Cta& cta, const Transfer& transfer) {
  if (cta.observer() != nullptr) [[unlikely]] {
    tell_shared(cta, transfer, transfer.shared, Use::kRead);
    tell_global(cta, transfer);
  }
  const std::byte* shared = cta.shared(transfer.shared);
  if (transfer.kind == Transfer::Kind::kReduce) {
    cta.reduce(transfer.global, {reinterpret_cast<const float*>(shared), transfer.bytes / sizeof(float)});
    return;
  }
  cta.settle_reductions(transfer.global, transfer.bytes);
  std::memcpy(reinterpret_cast<void*>(transfer.global), shared, transfer.bytes);
}

void store(Cta& cta, const Transfer& transfer) {
  if (transfer.tiled) {
    copy_box(cta, transfer, transfer.shared);
  } else {
    store_bytes(cta, transfer);
  }
  if (cta.observer() != nullptr) [[unlikely]]
    cta.observer()->ended(transfer.by.operation);
}

}  // namespace

void check(Cta& cta, const Transfer& transfer) {
  if (transfer.tiled) {
    check_box(transfer);
  } else {
    check_bytes(cta, transfer);
  }
  switch (transfer.kind) {
    case Transfer::Kind::kLoad:
      check_destinations(cta, transfer);
      break;
    case Transfer::Kind::kToPeer:
      if (rank_of(transfer.peer) == cta.rank())
        throw Misuse(
            "a bulk copy from shared memory to the CTA's own; the destination must be another CTA's");
      cta.cluster_shared(transfer.peer, transfer.bytes, "a bulk copy");
      check_signal(cta, transfer.peer, transfer.mbarrier, false);
      [[fallthrough]];
    case Transfer::Kind::kStore:
    case Transfer::Kind::kReduce:
      cta.shared(transfer.shared, bytes_of(transfer), what(transfer));
      break;
  }
}

MbarrierUser user_of(Cta& cta, const Issuer& by) {
  return {&cta.warps()[by.warp], by.step, LaneMask{1} << by.lane, by.operation};
}

void perform(Cta& cta, const Transfer& transfer) {
  switch (transfer.kind) {
    case Transfer::Kind::kLoad:
      return load(cta, transfer);
    case Transfer::Kind::kStore:
    case Transfer::Kind::kReduce:
      return store(cta, transfer);
    case Transfer::Kind::kToPeer:
      return copy_to_peer(cta, transfer);
  }
}

namespace {

void tell_elements(Cta& cta, const ElementCopies& copies) {
  Observer& observer = *cta.observer();
  Footprint shared, global;
  for (LaneMask rest = copies.mask; rest != 0 && !copies.is_arrival; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    shared.add(on_rank(copies.shared[l], 0), copies.bytes);
    shared.tell(observer, copies.by.operation, &cta, Use::kWrite, LaneMask{1} << l);
    global.add(copies.global[l], copies.from_bytes[l]);
    global.tell(observer, copies.by.operation, nullptr, Use::kRead, LaneMask{1} << l);
  }
  observer.ended(copies.by.operation);
}

}  // namespace

void perform(Cta& cta, const ElementCopies& copies) {
  if (cta.observer() != nullptr) [[unlikely]]
    tell_elements(cta, copies);
  for (LaneMask rest = copies.mask; rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    std::byte* shared = cta.shared(copies.shared[l]);
    if (copies.is_arrival) {
      const MbarrierUser lane{&cta.warps()[copies.by.warp], copies.by.step, LaneMask{1} << l,
                              copies.by.operation};
      MbarrierAccess(cta, copies.shared[l], lane).arrive(1);
      continue;
    }
    if (copies.from_bytes[l] != 0) {
      cta.settle_reductions(copies.global[l], copies.from_bytes[l]);
      std::memcpy(shared, reinterpret_cast<const void*>(copies.global[l]), copies.from_bytes[l]);
    }
    std::memset(shared + copies.from_bytes[l], 0, copies.bytes - copies.from_bytes[l]);
  }
}

}  // namespace flashback::emulator
