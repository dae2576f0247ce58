// When the gradient of a sink is right.
#pragma once

#include <span>

#include "attention/reference/reference.h"
#include "attention/tolerance.h"

namespace flashback {

// No 16-bit product enters it. Of each head it is a sum over the rows,
//   dsink = -sum exp(sink - lse) (dout . out - dlse),
// of what the pass is given: out as it is stored, and lse; a row with an infinite lse sees no key, so that
// its weight is 1 and dlse is all that it has. So it is judged against exact arithmetic on these, and what it
// may be off by is what fp32 makes of the sum: a term passes so many roundings, of which each costs 2^-24 of
// it. (The 16-bit reference is no measure: its one error, a sum of as many of either sign, may by luck be
// near 0.)
//
// Of the verdict, max_abs and limit are those of the head that is the nearest to its limit, or the farthest
// over it.
Verdict judge_sink(std::span<const float> dsink, const reference::Question& question,
                   const reference::Inputs& inputs, std::span<const float> lse, std::span<const float> out);

}  // namespace flashback
