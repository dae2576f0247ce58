// What every probe is told. Plain C++, for the host too.
#pragma once

#include <cstdint>

namespace flashback::micro {

struct Parameters {
  float* memory;       // kMemoryBytes of floats, zeros
  std::uint32_t* out;  // a word a thread: that the work was done
  std::int32_t n;      // repetitions
  std::int32_t reserved = 0;
};

inline constexpr std::uint32_t kMemoryBytes = 8u << 20;  // stays in L2
inline constexpr std::uint32_t kCopyBytes = 16384;
inline constexpr int kUnrolled = 16;  // operations of a repetition, where a probe says nothing else
inline constexpr int kRounds = 4;     // of so many chains side by side
inline constexpr int kChained = 256;  // dependent additions of a repetition

}  // namespace flashback::micro
