#include "emulator/machine/units/footprint.h"

#include <algorithm>
#include <array>

namespace flashback::emulator {

void Footprint::add_operand(const OperandDescriptor& descriptor, bool mn_major, int lines, int chunks) {
  constexpr std::uint32_t kChunk = 16;
  constexpr int kMostChunks = 32;  // 256 elements
  std::array<std::uint32_t, kMostChunks> at;
  for (int line = 0; line < lines; ++line) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      at[static_cast<std::size_t>(chunk)] = chunk_address(descriptor, mn_major, line, chunk);
    }
    std::sort(at.begin(), at.begin() + chunks);
    for (int chunk = 0; chunk < chunks; ++chunk) add(at[static_cast<std::size_t>(chunk)], kChunk);
  }
}

}  // namespace flashback::emulator
