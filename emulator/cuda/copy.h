// Copies and fills between host and device memory, checked as CUDA checks them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flashback::emulator::cuda {

enum class Side { kHost, kDevice, kEither };

// Rows of bytes in planes.
struct Box {
  const void* begin;
  std::size_t row_pitch = 0, plane_pitch = 0;  // bytes from one to the next
  Side side = Side::kEither;
};
struct Extent {
  std::size_t width, height = 1, depth = 1;  // width in bytes
};

// Refuses device memory that no block holds, and device memory where host memory was announced.
void copy(const Box& to, const Box& from, const Extent& extent);

// Writes `value`, of 1, 2 or 4 bytes, all over.
void fill(const Box& to, const Extent& extent, std::uint32_t value, std::size_t value_bytes);

}  // namespace flashback::emulator::cuda
