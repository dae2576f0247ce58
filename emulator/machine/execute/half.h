// Arithmetic on f16 and bf16, scalar or two to a register: computed in double, rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "emulator/machine/execute/pairs.h"
#include "emulator/machine/execute/real.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {

// What such a step carries in its immediate.
struct HalfModifiers {
  bool packed = false, ftz = false, sat = false, relu = false;
};

// `op` maps doubles to a double that rounds to the right result: exact, or rounded to odd.
template <class H, auto op, class... Sources>
void half_elements(Warp& warp, const Step& step, LaneMask mask, Sources... sources) {
  const HalfModifiers how = std::bit_cast<HalfModifiers>(std::int32_t(step.immediate));
  std::uint16_t* d = warp.lanes<std::uint16_t>(step.d);
  auto flush = [&](float x) {
    return how.ftz && std::abs(x) < std::ldexp(1.0f, H::kFormat.min_exponent) ? std::copysign(0.0f, x) : x;
  };
  auto element = [&](int i) {
    const double exact = op(double(flush(H::decode(sources[i])))...);
    const bool flushed = how.ftz && is_tiny(exact, Rounding::kNearest, H::kFormat);
    float x = flushed ? std::copysign(0.0f, float(exact)) : H::decode(H::nearest(odd_float(exact)));
    if (how.sat) x = saturated(x);
    if (how.relu && x <= 0) x = 0;
    d[i] = H::nearest(x);
  };
  if (how.packed) {
    each_of_pairs(mask, element);
  } else {
    each_lane(mask, element);
  }
}

template <class H, auto op>
void half_step(Warp& warp, const Step& step, LaneMask mask) {
  const std::uint16_t* a = warp.lanes<std::uint16_t>(step.a);
  if constexpr (std::is_invocable_v<decltype(op), double>) {
    half_elements<H, op>(warp, step, mask, a);
  } else if constexpr (std::is_invocable_v<decltype(op), double, double>) {
    half_elements<H, op>(warp, step, mask, a, warp.lanes<std::uint16_t>(step.b));
  } else {
    half_elements<H, op>(warp, step, mask, a, warp.lanes<std::uint16_t>(step.b),
                         warp.lanes<std::uint16_t>(step.c));
  }
}

template <class H, auto op>
Body half_body(Match& match) {
  const HalfModifiers how{match.bytes('d') == 4, match.has(".ftz"), match.has(".sat"), match.has(".relu")};
  match.step().immediate = std::bit_cast<std::int32_t>(how);
  return half_step<H, op>;
}

}  // namespace flashback::emulator
