// Bulk copies of plain bytes, and cp.async.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emulator/machine/cta.h"
#include "emulator/machine/mbarrier_access.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/machine/units/transfer.h"
#include "emulator/machine/units/work_queue.h"

namespace flashback::emulator {
namespace {

void require_multiple(std::uint64_t value, std::uint64_t unit, const char* what) {
  if (value % unit != 0)
    throw Misuse(fmt::format("{} is {:#x}, which is not a multiple of {}", what, value, unit));
}

void check_bytes(Cta& cta, const Transfer& transfer) {
  require_multiple(transfer.bytes, 16, "the size of the bulk copy");
  require_multiple(transfer.shared, 16, "its shared address");
  require_multiple(transfer.global, 16, "its global address");
  cta.shared(transfer.shared, transfer.bytes, "a bulk copy");
  if (!cta.global_holds(transfer.global, transfer.bytes)) {
    throw Misuse(fmt::format("a bulk copy of {} bytes at global address {:#x}; no allocation holds them",
                             transfer.bytes, transfer.global));
  }
}

void tell_bytes(Cta& cta, const Transfer& transfer) {
  Observer& observer = *cta.observer();
  const ByteRange shared{transfer.shared, transfer.bytes}, global{transfer.global, transfer.bytes};
  const bool is_load = transfer.kind == Transfer::Kind::kLoad;
  const Use global_use = is_load                                   ? Use::kRead
                         : transfer.kind == Transfer::Kind::kStore ? Use::kWrite
                                                                   : Use::kReadWrite;
  const std::uint64_t operation = transfer.by.operation;
  observer.accessed(OperationAccess{operation, &cta, is_load ? Use::kWrite : Use::kRead, {&shared, 1}});
  observer.accessed(OperationAccess{operation, nullptr, global_use, {&global, 1}});
}

void copy_bytes(Cta& cta, const Transfer& transfer) {
  if (cta.observer() != nullptr) [[unlikely]]
    tell_bytes(cta, transfer);
  std::byte* shared = cta.shared(transfer.shared);
  auto* global = reinterpret_cast<std::byte*>(transfer.global);
  switch (transfer.kind) {
    case Transfer::Kind::kLoad:
      cta.settle_reductions(transfer.global, transfer.bytes);
      std::memcpy(shared, global, transfer.bytes);
      break;
    case Transfer::Kind::kStore:
      cta.settle_reductions(transfer.global, transfer.bytes);
      std::memcpy(global, shared, transfer.bytes);
      break;
    case Transfer::Kind::kReduce:
      cta.reduce(transfer.global, {reinterpret_cast<const float*>(shared), transfer.bytes / sizeof(float)});
      break;
  }
}

}  // namespace

void check(Cta& cta, const Transfer& transfer) {
  if (transfer.tiled) {
    check_box(cta, transfer);
  } else {
    check_bytes(cta, transfer);
  }
  if (transfer.kind != Transfer::Kind::kLoad) return;
  require_multiple(transfer.mbarrier, 8, "the address of its mbarrier");
  cta.shared(transfer.mbarrier, 8, "an mbarrier");
}

MbarrierUser user_of(Cta& cta, const Issuer& by) {
  return {&cta.warps()[by.warp], by.step, LaneMask{1} << by.lane, by.operation};
}

void perform(Cta& cta, const Transfer& transfer) {
  if (transfer.tiled) {
    copy_box(cta, transfer);
  } else {
    copy_bytes(cta, transfer);
  }
  if (cta.observer() != nullptr) [[unlikely]]
    cta.observer()->ended(transfer.by.operation);
  if (transfer.kind != Transfer::Kind::kLoad) return;
  // The whole box counts, also what lies out of bounds.
  const std::uint32_t bytes = transfer.tiled ? transfer.map.box_bytes() : transfer.bytes;
  MbarrierAccess(cta, transfer.mbarrier, user_of(cta, transfer.by)).complete(bytes);
}

namespace {

void tell_elements(Cta& cta, const ElementCopies& copies) {
  Observer& observer = *cta.observer();
  Footprint shared, global;
  for (LaneMask rest = copies.mask; rest != 0 && !copies.is_arrival; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    shared.add(copies.shared[l], copies.bytes);
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
