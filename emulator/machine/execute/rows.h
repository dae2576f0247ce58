// What the tables of the plain instructions are written with.
#pragma once

#include <cstdint>

#include "emulator/machine/execute/lanes.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// A row without a choice.
template <Body body>
Body always(Match&) {
  return body;
}

// Sources and destination of one type, the usual case.
template <class T, auto f>
inline constexpr auto one = always<unary<T, T, f>>;
template <class T, auto f>
inline constexpr auto two = always<binary<T, T, T, f>>;
template <class T, auto f>
inline constexpr auto three = always<ternary<T, T, T, T, f>>;

}  // namespace flashback::emulator
