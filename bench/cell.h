// The shapes that the backward pass is timed at, by the field's habit: as many sequences as make 65,536
// tokens, 32 query heads of 64 channels.
#pragma once

#include <string>
#include <vector>

#include "attention/problem.h"

namespace flashback::bench {

struct Cell {
  Mask mask;
  Shape shape;

  bool grouped() const { return shape.kv_heads != shape.heads; }
};

std::string name(const Cell& cell);  // causal gqa 4096

// Floating-point operations of the five products, half of them under a causal mask: what everyone counts,
// whichever tiles a kernel skips.
double flop(const Cell& cell);

// {dense, causal} x {mha, gqa 32:8} x {1k .. 32k}.
std::vector<Cell> all_cells();

// The cells that match `words`: masks, head kinds and lengths separated by commas, as in
// "causal,gqa,1024,2k"; a kind of which no word is given is open. Empty: all. Throws a Failure.
std::vector<Cell> chosen_cells(const std::string& words);

}  // namespace flashback::bench
