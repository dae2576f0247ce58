// tcgen05.alloc, dealloc, ld, st, wait, fence.
#include "emulator/machine/units/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/machine/cta.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/execute/whole_warp.h"
#include "emulator/machine/units/cta_pair.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

template <Body body>
Body always(Match&) {
  return body;
}

void nothing(Warp&, const Step&, LaneMask) {}

// A number of columns that may be allocated.
std::uint32_t column_count(const Warp& warp, const Step& step) {
  const std::uint32_t columns = uniform<std::uint32_t>(warp, step, step.b, "the number of columns");
  if (columns < TensorMemory::kUnit || columns > TensorMemory::kColumns || !std::has_single_bit(columns)) {
    warp.fault(step,
               fmt::format("{} columns of tensor memory; 32, 64, 128, 256 and 512 are accepted", columns));
  }
  return columns;
}

// All tcgen05 of a CTA have one cta_group.
void require_group(const Warp& warp, const Step& step, int group) {
  int& used = warp.cta().tensor_memory.group;
  if (used == 0) used = group;
  if (used == group) return;
  warp.fault(step,
             fmt::format("cta_group::{} in a CTA that has allocated tensor memory with cta_group::{}; all of "
                         "its tcgen05 must have the same",
                         group, used));
}

// Asks together with the pair's other CTA. False when the instruction was put off.
bool granted_in_pair(Warp& warp, TensorMemory::PairRequest::Kind kind, std::uint32_t columns,
                     std::uint32_t* first) {
  switch (ask_in_pair(warp.cta(), {kind, warp.index(), columns, *first}, first)) {
    case PairAnswer::kGranted:
      return true;
    case PairAnswer::kPeerIsMissing:
      warp.wait_here({Wait::Kind::kPair, 0, 0});
      return false;
    case PairAnswer::kNoColumns:
      warp.wait_here({Wait::Kind::kColumns, columns, 0});
      return false;
  }
  return false;
}

template <class Width, int group>
void allocate(Warp& warp, const Step& step, LaneMask) {
  if (!whole_warp(warp, step)) return;
  TensorMemory& memory = warp.cta().tensor_memory;
  const std::uint32_t columns = column_count(warp, step);
  if (memory.relinquished) warp.fault(step, "an allocation after tcgen05.relinquish_alloc_permit");
  require_group(warp, step, group);
  std::byte* to =
      shared_object<Width>(warp, step, step.a, step.immediate, 0, 4, "the address of the allocation");
  std::uint32_t first = 0;
  if (group == 2) {
    if (!granted_in_pair(warp, TensorMemory::PairRequest::Kind::kAllocate, columns, &first)) return;
  } else if ((first = memory.allocate(columns)) == TensorMemory::kColumns) {
    warp.wait_here({Wait::Kind::kColumns, columns, 0});
    return;
  }
  std::memcpy(to, &first, sizeof first);
  if (Observer* observer = warp.cta().observer()) [[unlikely]] {
    std::uint64_t addresses[32];
    std::fill_n(addresses, 32, on_rank(shared_address<Width>(warp, step, step.a, step.immediate, 0), 0));
    observer->accessed(warp, step, {&warp.cta(), Use::kWrite, kAllLanes, sizeof first, addresses});
    observer->columns_allocated(warp, step, first, columns);
  }
}

template <int group>
void deallocate(Warp& warp, const Step& step, LaneMask) {
  if (!whole_warp(warp, step)) return;
  const std::uint32_t columns = column_count(warp, step);
  std::uint32_t address = uniform<std::uint32_t>(warp, step, step.a, "the address");
  require_group(warp, step, group);
  if (group == 2) {
    if (!granted_in_pair(warp, TensorMemory::PairRequest::Kind::kRelease, columns, &address)) return;
  } else if (!warp.cta().tensor_memory.release(address, columns)) {
    warp.fault(step,
               fmt::format("{} columns from tensor memory address {:#010x} on, which are not all allocated",
                           columns, address));
  }
  if (Observer* observer = warp.cta().observer()) [[unlikely]]
    observer->columns_released(warp, step, address & 0xffff, columns);
}

void relinquish(Warp& warp, const Step& step, LaneMask) {
  if (whole_warp(warp, step)) warp.cta().tensor_memory.relinquished = true;
}

// Where the step's registers lie. A lane field within the first quarter stands for the same lane of the
// warp's own.
TensorAccess access_of(const Warp& warp, const Step& step, TensorShape shape, bool packs) {
  const bool is_split = shape == TensorShape::k16x32bx2;  // then the immediate is the distance of its halves
  const std::uint32_t address = uniform<std::uint32_t>(warp, step, step.a, "the address") +
                                (is_split ? 0 : static_cast<std::uint32_t>(step.immediate));
  const std::uint32_t own = 32 * (static_cast<std::uint32_t>(warp.index()) % 4);
  std::uint32_t lane = address >> 16;
  if (lane < 32) lane += own;
  TensorAccess access{shape, packs, lane, address & 0xffff,
                      is_split ? static_cast<std::uint32_t>(step.immediate) : 0};
  if (lane != own && lane != own + 32 - access.lanes()) {
    warp.fault(
        step,
        fmt::format("{} lanes of tensor memory from {} on; warp {} may access lanes {} to {} only, from {}",
                    access.lanes(), address >> 16, warp.index(), own, own + 31,
                    access.lanes() == 32 ? "the first" : "the first or the middle one"));
  }
  const std::uint32_t columns = access.columns(step.list_size);
  for (const std::uint32_t first : {access.column, access.column + access.half}) {
    if (!warp.cta().tensor_memory.reachable(first, columns)) {
      warp.fault(step, fmt::format("columns {} to {} of tensor memory, which are not all allocated", first,
                                   first + columns - 1));
    }
  }
  return access;
}

// Number of a load or store that is issued now, whose access is known at once.
std::uint64_t announce(const Warp& warp, const Step& step, Operation::Kind kind, const TensorAccess& access) {
  const std::uint64_t number = announce(warp, step, kAllLanes, kind);
  if (number == 0) [[likely]]
    return 0;
  ColumnAccess told{number, &warp.cta(), kind == Operation::Kind::kTensorLoad ? Use::kRead : Use::kWrite,
                    access.column, access.columns(step.list_size)};
  told.lanes[warp.index() % 4] = (access.lanes() == 32 ? kAllLanes : LaneMask{0xffff}) << access.lane % 32;
  warp.cta().observer()->accessed(told);
  if (access.half != 0) {
    told.first += access.half;
    warp.cta().observer()->accessed(told);
  }
  return number;
}

template <TensorShape shape, bool packs>
void load(Warp& warp, const Step& step, LaneMask) {
  if (!whole_warp(warp, step)) return;
  const TensorAccess from = access_of(warp, step, shape, packs);
  warp.pending_loads.push_back({&step, from, announce(warp, step, Operation::Kind::kTensorLoad, from)});
  if (warp.cta().work.at_once()) copy_newest_load(warp);
}

template <TensorShape shape, bool unpacks>
void store(Warp& warp, const Step& step, LaneMask) {
  if (!whole_warp(warp, step)) return;
  Cta& cta = warp.cta();
  const TensorAccess to = access_of(warp, step, shape, unpacks);
  const std::uint64_t operation = announce(warp, step, Operation::Kind::kTensorStore, to);
  if (cta.work.at_once()) {
    for (std::uint32_t j = 0; j < step.list_size; ++j) {
      cta.tensor_memory.store(to, j, warp.lanes<std::uint32_t>(step.list[j]));
    }
    if (operation != 0) [[unlikely]]
      warp.pending_stores.push_back({to, {}, operation});
    return;
  }
  Warp::PendingStore pending{to, std::vector<std::uint32_t>(std::size_t{32} * step.list_size), operation};
  for (std::uint32_t j = 0; j < step.list_size; ++j) {
    std::memcpy(pending.values.data() + 32 * j, warp.lanes<std::uint32_t>(step.list[j]), 128);
  }
  warp.pending_stores.push_back(std::move(pending));
}

void wait_loads(Warp& warp, const Step& step, LaneMask) {
  if (whole_warp(warp, step)) complete_all_loads(warp);
}

void wait_stores(Warp& warp, const Step& step, LaneMask) {
  if (whole_warp(warp, step)) complete_all_stores(warp);
}

int registers_of(std::string_view shape, std::string_view count) {
  int number = 0;
  for (const char digit : count.substr(1)) number = 10 * number + (digit - '0');
  return number * (shape == "16x256b" ? 4 : shape == "16x128b" ? 2 : 1);
}

template <bool kStores, bool packs>
Body body_of(std::string_view shape) {
  const auto of = []<TensorShape s>() -> Body {
    if constexpr (kStores) return store<s, packs>;
    return load<s, packs>;
  };
  if (shape == "32x32b") return of.template operator()<TensorShape::k32x32b>();
  if (shape == "16x32bx2") return of.template operator()<TensorShape::k16x32bx2>();
  if (shape == "16x64b") return of.template operator()<TensorShape::k16x64b>();
  if (shape == "16x128b") return of.template operator()<TensorShape::k16x128b>();
  return of.template operator()<TensorShape::k16x256b>();
}

// The form's choices are the shape and the count.
template <bool kStores, bool packs>
Body select_access(Match& match) {
  const std::string_view shape = match.choice(0);
  const int registers = registers_of(shape, match.choice(1));
  return registers <= 128 && match.list_size() == registers ? body_of<kStores, packs>(shape) : nullptr;
}

// Choices: cta_group.
bool of_pair(Match& match) {
  return match.choice(0) == "cta_group::2";
}

template <class Width>
Body allocate_in_group(Match& match) {
  return of_pair(match) ? allocate<Width, 2> : allocate<Width, 1>;
}

Body select_allocate(Match& match) {
  return match.bytes('a') == 8 ? allocate_in_group<std::uint64_t>(match)
                               : allocate_in_group<std::uint32_t>(match);
}

Body select_deallocate(Match& match) {
  return of_pair(match) ? deallocate<2> : deallocate<1>;
}

Body select_wait(Match& match) {
  return match.has("::ld") ? wait_loads : wait_stores;
}

#define GROUP "(.cta_group::1|.cta_group::2)"
#define SHAPE "(.32x32b|.16x64b|.16x128b|.16x256b)"
#define SPLIT "(.16x32bx2)"
#define COUNT "(.x1|.x2|.x4|.x8|.x16|.x32|.x64|.x128)"

constexpr Row kRows[] = {
    {"tcgen05.alloc" GROUP ".sync.aligned{.shared::cta}.b32", "[a], b:r32", select_allocate},
    {"tcgen05.dealloc" GROUP ".sync.aligned.b32", "a:r32, b:r32", select_deallocate},
    {"tcgen05.relinquish_alloc_permit" GROUP ".sync.aligned", "", always<relinquish>},
    {"tcgen05.ld.sync.aligned" SHAPE COUNT ".b32", "list:{r32}, [a:r32]", select_access<false, false>},
    {"tcgen05.ld.sync.aligned" SHAPE COUNT ".pack::16b.b32", "list:{r32}, [a:r32]",
     select_access<false, true>},
    {"tcgen05.ld.sync.aligned" SPLIT COUNT ".b32", "list:{r32}, [a:r32], i:imm", select_access<false, false>},
    {"tcgen05.ld.sync.aligned" SPLIT COUNT ".pack::16b.b32", "list:{r32}, [a:r32], i:imm",
     select_access<false, true>},
    {"tcgen05.st.sync.aligned" SHAPE COUNT ".b32", "[a:r32], list:{r32}", select_access<true, false>},
    {"tcgen05.st.sync.aligned" SHAPE COUNT ".unpack::16b.b32", "[a:r32], list:{r32}",
     select_access<true, true>},
    {"tcgen05.st.sync.aligned" SPLIT COUNT ".b32", "[a:r32], i:imm, list:{r32}", select_access<true, false>},
    {"tcgen05.st.sync.aligned" SPLIT COUNT ".unpack::16b.b32", "[a:r32], i:imm, list:{r32}",
     select_access<true, true>},
    {"tcgen05.wait(::ld|::st).sync.aligned", "", select_wait},
    {"tcgen05.fence(::before_thread_sync|::after_thread_sync)", "", always<nothing>},
};

}  // namespace

std::span<const Row> tensor_memory_rows() {
  return kRows;
}

}  // namespace flashback::emulator
