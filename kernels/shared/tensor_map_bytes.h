// A tensor map as it travels in kernel parameters: 128 opaque bytes.
#pragma once

#include <cstdint>

namespace flashback {

struct alignas(64) TensorMapBytes {
  std::uint64_t words[16];
};

}  // namespace flashback
