// Draws who lives where in tensor memory: fp32 accumulators in the upper row; below, whatever is written over
// them or beside them later.
#pragma once

#include <span>
#include <string>

namespace flashback::program {

struct TensorMemoryTile {
  std::string name;
  int first, columns;  // of 32 bits
  bool accumulator;    // fp32, written by the tensor core; else 16 bit, two a column, written by warps
};

// `tiles` in the order in which they come to life: one that meets an earlier one lives over it. Columns are
// multiples of 8.
std::string draw_tensor_memory(std::span<const TensorMemoryTile> tiles, int columns);

}  // namespace flashback::program
