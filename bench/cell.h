// The shapes that a pass is timed at, by the field's habit: as many sequences as make 65,536
// tokens, 2048 channels of queries, and one of several things besides.
#pragma once

#include <string>
#include <vector>

#include "attention/problem.h"

namespace flashback::bench {

struct Cell {
  Mask mask;
  Shape shape;  // of sequences of one length, packed or not
  Direction direction = Direction::kBackward;
  Dtype dtype = Dtype::kBf16;
  bool deterministic = false;
  bool packed = false;  // the sequences are told by cu_seqlens; a contender must not use that they are alike
};

std::string name(const Cell& cell);  // causal gqa 4096, dense mha 1024 fp16 deterministic

// Keys that query row `row` sees.
std::int64_t visible_keys(const Cell& cell, std::int64_t row);

// Floating-point operations of the five products, forward of the two: under a causal mask half of them, which
// is what everyone counts, and under a window those of the scores that are seen.
double flop(const Cell& cell);

// The cells that match `words`, as in "causal,gqa,1024,2k": of each kind of words those that are given, and
// where none is given
//   masks dense, causal (and window: the last 1024 keys)     heads mha, gqa (and mqa)
//   lengths 1k .. 32k (and 128, 256, 512)                    dtype bf16 (or fp16)
//   order default (or deterministic)                         layout padded (or packed)
//   head dimension d64 (or d128)
// Throws a Failure; so it does for a deterministic order of the forward pass, which has but one.
std::vector<Cell> chosen_cells(const std::string& words, Direction direction = Direction::kBackward);

// Those of the published headline, and 124 of the published sweep's kinds.
std::vector<Cell> headline_cells();
std::vector<Cell> sweep_cells();

}  // namespace flashback::bench
