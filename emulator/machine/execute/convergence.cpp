// What the lanes of a warp do together: elect, shfl, vote, match, activemask, bar.warp.sync, redux.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "emulator/machine/execute/lanes.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

template <Body body>
Body always(Match&) {
  return body;
}

// True when the lanes of the member mask are all here. Each executing lane must be a member.
bool members_are_here(Warp& warp, const Step& step, Slot member_slot, LaneMask mask, LaneMask* members) {
  *members = warp.lanes<LaneMask>(member_slot)[std::countr_zero(mask)];
  if ((mask & ~*members) != 0) {
    warp.fault(
        step,
        fmt::format("lanes {:#010x} execute it with the member mask {:#010x}, which leaves some of them out",
                    mask, *members));
  }
  return warp.gathers(*members);
}

void elect(Warp& warp, const Step& step, LaneMask mask) {
  LaneMask members;
  if (!members_are_here(warp, step, step.a, mask, &members)) return;
  const int leader = std::countr_zero(members & mask);  // hardware takes the lowest
  if (step.d != kNone) {
    std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
    each_lane(mask, [&](int l) { d[l] = static_cast<std::uint32_t>(leader); });
  }
  warp.set_predicate(step.list[0], LaneMask{1} << leader, mask);
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

template <Shuffle mode>
void shuffle(Warp& warp, const Step& step, LaneMask mask) {
  LaneMask members;
  if (!members_are_here(warp, step, step.list[1], mask, &members)) return;
  std::uint32_t source[32];
  std::memcpy(source, warp.lanes<std::uint32_t>(step.a), sizeof source);
  std::uint32_t* d = step.d == kNone ? nullptr : warp.lanes<std::uint32_t>(step.d);
  const std::uint32_t* b = warp.lanes<std::uint32_t>(step.b);
  const std::uint32_t* c = warp.lanes<std::uint32_t>(step.c);
  LaneMask in_range = 0;
  each_lane(mask, [&](int l) {
    const int lane = static_cast<int>(b[l] & 31), clamp = static_cast<int>(c[l] & 31);
    const int segment = static_cast<int>(c[l] >> 8 & 31);
    const int highest = (l & segment) | (clamp & ~segment), lowest = l & segment;
    int from = 0;
    bool valid = false;
    if constexpr (mode == Shuffle::kUp) {
      from = l - lane;
      valid = from >= highest;
    } else if constexpr (mode == Shuffle::kDown) {
      from = l + lane;
      valid = from <= highest;
    } else if constexpr (mode == Shuffle::kButterfly) {
      from = l ^ lane;
      valid = from <= highest;
    } else {
      from = lowest | (lane & ~segment);
      valid = from <= highest;
    }
    if (!valid) from = l;
    if (d != nullptr) d[l] = source[from];
    in_range |= LaneMask{valid} << l;
  });
  if (step.list[0] != kNone) warp.set_predicate(step.list[0], in_range, mask);
}

enum class Vote { kAll, kAny, kUniform, kBallot };

template <Vote mode>
void vote(Warp& warp, const Step& step, LaneMask mask) {
  LaneMask members;
  if (!members_are_here(warp, step, step.b, mask, &members)) return;
  const LaneMask trues = warp.predicate(step.a) & mask;
  if constexpr (mode == Vote::kBallot) {
    std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
    each_lane(mask, [&](int l) { d[l] = trues; });
  } else {
    const bool result = mode == Vote::kAll   ? trues == mask
                        : mode == Vote::kAny ? trues != 0
                                             : trues == mask || trues == 0;
    warp.set_predicate(step.d, result ? kAllLanes : 0, mask);
  }
}

template <class T>
void match_any(Warp& warp, const Step& step, LaneMask mask) {
  LaneMask members;
  if (!members_are_here(warp, step, step.b, mask, &members)) return;
  const T* a = warp.lanes<T>(step.a);
  std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
  LaneMask equal[32];
  each_lane(mask, [&](int l) {
    equal[l] = 0;
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
      const int other = std::countr_zero(rest);
      equal[l] |= LaneMask{a[other] == a[l]} << other;
    }
  });
  each_lane(mask, [&](int l) { d[l] = equal[l]; });
}

void active_mask(Warp& warp, const Step& step, LaneMask mask) {
  std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
  each_lane(mask, [&](int l) { d[l] = mask; });
}

void warp_barrier(Warp& warp, const Step& step, LaneMask mask) {
  LaneMask members;
  members_are_here(warp, step, step.a, mask, &members);
}

template <class T, auto combine>
void reduce(Warp& warp, const Step& step, LaneMask mask) {
  LaneMask members;
  if (!members_are_here(warp, step, step.b, mask, &members)) return;
  const T* a = warp.lanes<T>(step.a);
  T* d = warp.lanes<T>(step.d);
  T sum = a[std::countr_zero(mask)];
  for (LaneMask rest = mask & (mask - 1); rest != 0; rest &= rest - 1)
    sum = combine(sum, a[std::countr_zero(rest)]);
  each_lane(mask, [&](int l) { d[l] = sum; });
}

Body select_shuffle(Match& match) {
  const std::string_view mode = match.choice(0);
  if (mode == "up") return shuffle<Shuffle::kUp>;
  if (mode == "down") return shuffle<Shuffle::kDown>;
  if (mode == "bfly") return shuffle<Shuffle::kButterfly>;
  return shuffle<Shuffle::kIndex>;
}

Body select_vote(Match& match) {
  const std::string_view mode = match.choice(0);
  if (mode == "all") return vote<Vote::kAll>;
  if (mode == "any") return vote<Vote::kAny>;
  return vote<Vote::kUniform>;
}

template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T least(T a, T b) {
  return std::min(a, b);
}
template <class T>
T greatest(T a, T b) {
  return std::max(a, b);
}

Body select_integer_reduction(Match& match) {
  const std::string_view operation = match.choice(0);
  const bool is_signed = match.choice(1) == "s32";
  if (operation == "add") return reduce<std::uint32_t, add<std::uint32_t>>;  // the same bits with a sign
  if (operation == "min") {
    return is_signed ? reduce<std::int32_t, least<std::int32_t>>
                     : reduce<std::uint32_t, least<std::uint32_t>>;
  }
  return is_signed ? reduce<std::int32_t, greatest<std::int32_t>>
                   : reduce<std::uint32_t, greatest<std::uint32_t>>;
}

Body select_bit_reduction(Match& match) {
  const std::string_view operation = match.choice(0);
  if (operation == "and")
    return reduce<std::uint32_t, [](std::uint32_t a, std::uint32_t b) { return a & b; }>;
  if (operation == "or") return reduce<std::uint32_t, [](std::uint32_t a, std::uint32_t b) { return a | b; }>;
  return reduce<std::uint32_t, [](std::uint32_t a, std::uint32_t b) { return a ^ b; }>;
}

constexpr Row kRows[] = {
    {"elect.sync", "d:r32|l:p, a:r32", always<elect>},
    {"shfl.sync(.up|.down|.bfly|.idx).b32", "d:r32|l:p?, a:r32, b:r32, c:r32, l:r32", select_shuffle},
    {"vote.sync(.all|.any|.uni).pred", "d:p, !a:p, b:r32", select_vote},
    {"vote.sync.ballot.b32", "d:r32, !a:p, b:r32", always<vote<Vote::kBallot>>},
    {"match.any.sync.b32", "d:r32, a:r32, b:r32", always<match_any<std::uint32_t>>},
    {"match.any.sync.b64", "d:r32, a:r64, b:r32", always<match_any<std::uint64_t>>},
    {"activemask.b32", "d:r32", always<active_mask>},
    {"bar.warp.sync", "a:r32", always<warp_barrier>},
    {"redux.sync(.add|.min|.max)(.u32|.s32)", "d:r32, a:r32, b:r32", select_integer_reduction},
    {"redux.sync(.and|.or|.xor).b32", "d:r32, a:r32, b:r32", select_bit_reduction},
};

}  // namespace

std::span<const Row> convergence_rows() {
  return kRows;
}

}  // namespace flashback::emulator
