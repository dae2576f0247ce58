// A tile of 16-bit elements in shared memory: rows of 64 elements, 128 bytes each, 128-byte swizzle. The same
// bytes serve products that run along the rows and products that run down the columns.
#pragma once

#include <cstdint>

#include "kernels/tile/descriptor.h"
#include "kernels/tile/swizzle.h"

namespace flashback::tile {

template <int rows>
struct alignas(kGroupBytes) OperandTile {
  static constexpr int kRows = rows;
  static constexpr int kBytes = rows * kRowBytes;

  std::uint8_t bytes[kBytes];

  // Offset of the 16-byte chunk of eight elements.
  static constexpr std::uint32_t chunk(int row, int index) {
    return swizzle128(static_cast<std::uint32_t>(row * kRowBytes + index * static_cast<int>(kChunkBytes)));
  }
};

}  // namespace flashback::tile
