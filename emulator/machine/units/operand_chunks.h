// Reads an operand from shared memory.
#pragma once

#include <cstring>

#include "emulator/machine/cta.h"
#include "emulator/machine/units/operand_descriptor.h"

namespace flashback::emulator {

inline constexpr int kChunkElements = 8;  // of 16 bit in 16 bytes

// Copies each 16-byte chunk of an operand to where `to(line, chunk)` says. Throws Misuse, naming `what`,
// where one lies outside of the CTA's shared memory. A descriptor has no rank: its addresses are those of the
// CTA whose operand it is.
template <class To>
void read_chunks(Cta& cta, const OperandDescriptor& descriptor, bool mn_major, int lines, int chunks,
                 const char* what, To&& to) {
  // Addresses grow with line and chunk, and a swizzle stays within 128 bytes: the ends tell about all.
  const std::uint32_t last = plain_address(descriptor, mn_major, lines - 1, chunks - 1);
  const std::byte* window = cta.shared(on_rank(0, cta.rank()));
  if ((descriptor.start & ~127u) >= kSharedBase && on_rank(last | 127u, cta.rank()) < cta.shared_end()) {
    const std::uint32_t mask = descriptor.swizzle_mask();
    for (int line = 0; line < lines; ++line) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::uint32_t address =
            swizzled_address(plain_address(descriptor, mn_major, line, chunk), mask);
        std::memcpy(to(line, chunk), window + address, 16);
      }
    }
    return;
  }
  for (int line = 0; line < lines; ++line) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const std::uint32_t address = on_rank(chunk_address(descriptor, mn_major, line, chunk), cta.rank());
      std::memcpy(to(line, chunk), cta.shared(address, 16, what), 16);
    }
  }
}

}  // namespace flashback::emulator
