// Reads an operand from shared memory.
#pragma once

#include <cstring>

#include "emulator/machine/cta.h"
#include "emulator/machine/units/operand_descriptor.h"

namespace flashback::emulator {

inline constexpr int kChunkElements = 8;  // of 16 bit in 16 bytes

// Copies each 16-byte chunk of an operand to where `to(line, chunk)` says. Throws Misuse, naming `what`,
// where one lies outside of the CTA's shared memory.
template <class To>
void read_chunks(Cta& cta, const OperandDescriptor& descriptor, bool mn_major, int lines, int chunks,
                 const char* what, To&& to) {
  // Addresses grow with line and chunk, and a swizzle stays within 128 bytes: the ends tell about all.
  const std::uint32_t last = plain_address(descriptor, mn_major, lines - 1, chunks - 1);
  if ((descriptor.start & ~127u) >= kSharedBase && (last | 127u) < cta.shared_end()) {
    const std::uint32_t mask = descriptor.swizzle_mask();
    const std::byte* shared = cta.shared(kSharedBase);
    for (int line = 0; line < lines; ++line) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::uint32_t address =
            swizzled_address(plain_address(descriptor, mn_major, line, chunk), mask);
        std::memcpy(to(line, chunk), shared + (address - kSharedBase), 16);
      }
    }
    return;
  }
  for (int line = 0; line < lines; ++line) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const std::uint32_t address = chunk_address(descriptor, mn_major, line, chunk);
      std::memcpy(to(line, chunk), cta.shared(address, 16, what), 16);
    }
  }
}

}  // namespace flashback::emulator
