// st.async and red.async.
#include <cstring>
#include <string_view>

#include "emulator/machine/cluster.h"
#include "emulator/machine/execute/combine.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/execute/shared_address.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

using Combine = std::uint64_t (*)(std::uint64_t value, std::uint64_t old);

// T: type in memory; kCount of them. Width: type of the address registers.
template <class Width, class T, int kCount, Combine combine>
void store(Warp& warp, const Step& step, LaneMask mask) {
  Cta& cta = warp.cta();
  const Slot* slots = kCount == 1 ? &step.b : step.list;
  each_lane(mask, [&](int l) {
    PeerStore store;
    store.by = {&step, static_cast<std::uint8_t>(warp.index()), static_cast<std::uint8_t>(l)};
    store.address = shared_address<Width>(warp, step, step.a, step.immediate, l);
    store.mbarrier = shared_address<Width>(warp, step, step.c, 0, l);
    store.bytes = kCount * sizeof(T);
    for (int i = 0; i < kCount; ++i)
      std::memcpy(store.values + i * sizeof(T), &warp.lanes<T>(slots[i])[l], sizeof(T));
    store.combine = combine;
    check(cta, store);
    store.by.operation = announce(warp, step, LaneMask{1} << l, Operation::Kind::kPeerStore, store.bytes,
                                  &cta.cluster().cta(rank_of(store.mbarrier)), on_rank(store.mbarrier, 0));
    cta.work.submit(store);
  });
}

template <class T, int kCount, Combine combine = nullptr>
Body by_width(Match& match) {
  if (match.bytes('a') != match.bytes('c')) return nullptr;
  return match.bytes('a') == 8 ? Body{store<std::uint64_t, T, kCount, combine>}
                               : Body{store<std::uint32_t, T, kCount, combine>};
}

// Choices: vector.
template <class T>
Body select_store(Match& match) {
  const int count = match.choice(0).empty() ? 1 : match.choice(0)[1] - '0';
  if (match.list_size() != (count == 1 ? 0 : count)) return nullptr;
  if (count == 1) return by_width<T, 1>(match);
  if (count == 2) return by_width<T, 2>(match);
  return sizeof(T) == 4 ? by_width<std::uint32_t, 4>(match) : nullptr;
}

template <class T, Combination operation>
std::uint64_t combined(std::uint64_t value, std::uint64_t old) {
  return static_cast<std::make_unsigned_t<T>>(
      combine<operation, T, false>(static_cast<T>(old), static_cast<T>(value), T{}));
}

template <Combination operation, class... Types>
Body reduction(Match& match, std::string_view type) {
  Body body = nullptr;
  const auto offer = [&]<class T>(T, std::string_view name) {
    if (type == name) body = by_width<std::make_unsigned_t<T>, 1, combined<T, operation>>(match);
  };
  const auto name_of = []<class T>(T) -> std::string_view {
    return sizeof(T) == 8 ? "u64" : std::is_signed_v<T> ? "s32" : "u32";
  };
  (offer(Types{}, name_of(Types{})), ...);
  return body;
}

// Choices: operation, type.
Body select_reduction(Match& match) {
  using u32 = std::uint32_t;
  using s32 = std::int32_t;
  const std::string_view operation = match.choice(0), type = match.choice(1);
  if (operation == "inc") return reduction<Combination::kIncrement, u32>(match, type);
  if (operation == "dec") return reduction<Combination::kDecrement, u32>(match, type);
  if (operation == "min") return reduction<Combination::kMin, u32, s32>(match, type);
  if (operation == "max") return reduction<Combination::kMax, u32, s32>(match, type);
  if (operation == "add") return reduction<Combination::kAdd, u32, s32, std::uint64_t>(match, type);
  if (type != "b32") return nullptr;
  if (operation == "and") return reduction<Combination::kAnd, u32>(match, "u32");
  if (operation == "or") return reduction<Combination::kOr, u32>(match, "u32");
  return reduction<Combination::kXor, u32>(match, "u32");
}

#define COMPLETION ".mbarrier::complete_tx::bytes"
#define STORE "st.async{.weak}{.shared::cluster}" COMPLETION
#define TYPES32 "(.b32|.u32|.s32|.f32)"
#define TYPES64 "(.b64|.u64|.s64|.f64)"
#define REDUCE "red.async.relaxed.cluster{.shared::cluster}{" COMPLETION "}"

constexpr Row kRows[] = {
    {STORE "{.v2|.v4}" TYPES32, "[a], b:r32, [c]", select_store<std::uint32_t>},
    {STORE "{.v2|.v4}" TYPES32, "[a], list:{r32}, [c]", select_store<std::uint32_t>},
    {STORE "{.v2|.v4}" TYPES64, "[a], b:r64, [c]", select_store<std::uint64_t>},
    {STORE "{.v2|.v4}" TYPES64, "[a], list:{r64}, [c]", select_store<std::uint64_t>},
    {REDUCE "(.add|.min|.max|.inc|.dec|.and|.or|.xor)(.u32|.s32|.b32)", "[a], b:r32, [c]", select_reduction},
    {REDUCE "(.add)(.u64)", "[a], b:r64, [c]", select_reduction},
};

}  // namespace

std::span<const Row> peer_store_rows() {
  return kRows;
}

}  // namespace flashback::emulator
