// How the rows of a run are divided among its sequences.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "attention/reference/reference.h"

namespace flashback::program {

// What the device is told; an empty vector says nothing.
struct Lengths {
  std::vector<std::int32_t> cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k;
};

// `problem` with the batch that packed sequences have and, as far as the shape tells no rows, the rows; its
// sequences are present but bound to no memory yet.
Problem with_lengths(Problem problem, const Lengths& lengths);

// Throws a Failure unless the numbers describe sequences of `shape`. `names` are those of the four vectors.
void demand_lengths(const Lengths& lengths, const Shape& shape, const std::array<std::string, 4>& names);

// What the references are asked.
reference::Question question_of(const Problem& problem, const Lengths& lengths);

}  // namespace flashback::program
