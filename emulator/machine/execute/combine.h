// What an atomic operation leaves in memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace flashback::emulator {

inline float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

enum class Combination { kAdd, kMin, kMax, kAnd, kOr, kXor, kExchange, kIncrement, kDecrement, kCompare };

// fp32 additions in global memory flush subnormals, those in shared memory do not.
template <Combination operation, class T, bool kFlush>
T combine(T old, T b, T c) {
  if constexpr (operation == Combination::kAdd) {
    if constexpr (std::is_same_v<T, float> && kFlush) return flushed(flushed(old) + flushed(b));
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    }
    return old + b;
  }
  if constexpr (operation == Combination::kMin) return std::min(old, b);
  if constexpr (operation == Combination::kMax) return std::max(old, b);
  if constexpr (operation == Combination::kExchange) return b;
  if constexpr (operation == Combination::kCompare) return old == b ? c : old;
  if constexpr (std::is_integral_v<T>) {
    if constexpr (operation == Combination::kAnd) return old & b;
    if constexpr (operation == Combination::kOr) return old | b;
    if constexpr (operation == Combination::kXor) return old ^ b;
    if constexpr (operation == Combination::kIncrement) return old >= b ? 0 : old + 1;
    if constexpr (operation == Combination::kDecrement) return old == 0 || old > b ? b : old - 1;
  }
  return old;
}

}  // namespace flashback::emulator
