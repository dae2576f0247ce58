#include "emulator/cuda/copy.h"

#include <cstring>

#include "emulator/cuda/process.h"

namespace flashback::emulator::cuda {
namespace {

std::byte* row_of(const Box& box, std::size_t row, std::size_t plane) {
  const auto* begin = static_cast<const std::byte*>(box.begin);
  return const_cast<std::byte*>(begin) + plane * box.plane_pitch + row * box.row_pitch;
}

void check(const Box& box, const Extent& extent) {
  require(box.begin != nullptr);
  require(extent.height == 1 || box.row_pitch >= extent.width, Error::kInvalidPitch);
  const std::byte* first = row_of(box, 0, 0);
  const std::byte* end = row_of(box, extent.height - 1, extent.depth - 1) + extent.width;
  const std::optional<Block> block = process().memory.find(first);
  if (!block) {
    require(box.side != Side::kDevice);
    return;
  }
  const bool of_device = block->kind == MemoryKind::kDevice || block->kind == MemoryKind::kVariable;
  require(box.side != Side::kHost || !of_device);
  require(block->kind == MemoryKind::kRegistered ||
          block->range.holds(reinterpret_cast<Address>(first), static_cast<std::size_t>(end - first)));
}

bool is_empty(const Extent& extent) {
  return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

}  // namespace

void copy(const Box& to, const Box& from, const Extent& extent) {
  if (is_empty(extent)) return;
  check(to, extent);
  check(from, extent);
  for (std::size_t plane = 0; plane < extent.depth; ++plane) {
    for (std::size_t row = 0; row < extent.height; ++row) {
      std::memmove(row_of(to, row, plane), row_of(from, row, plane), extent.width);
    }
  }
}

void fill(const Box& to, const Extent& extent, std::uint32_t value, std::size_t value_bytes) {
  if (is_empty(extent)) return;
  check(to, extent);
  require(reinterpret_cast<std::uintptr_t>(to.begin) % value_bytes == 0);
  for (std::size_t plane = 0; plane < extent.depth; ++plane) {
    for (std::size_t row = 0; row < extent.height; ++row) {
      std::byte* at = row_of(to, row, plane);
      if (value_bytes == 1) {
        std::memset(at, static_cast<int>(value), extent.width);
        continue;
      }
      for (std::size_t byte = 0; byte < extent.width; byte += value_bytes) {
        std::memcpy(at + byte, &value, value_bytes);  // little endian: the low bytes come first
      }
    }
  }
}

}  // namespace flashback::emulator::cuda
