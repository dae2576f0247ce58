// The clock inside a kernel: its PTX with two reads of %clock64 added, for the cycles that a persistent CTA
// takes from its first instruction to its last.
#pragma once

#include <string>
#include <string_view>

#include "attention/problem.h"
#include "device/device.h"

namespace flashback::micro {

// The text of `entry` with the clocks: the warps of CTA 0 leave their cycles at the 64-bit address in the
// parameters at `pointer_offset`, plus 8 bytes, a warp 8. Empty where the text has no such entry.
std::string with_clocks(std::string_view ptx, std::string_view entry, std::size_t pointer_offset);

// Cycles of a tile of 128 x 128 that CTA 0 took in a launch of `problem`'s kernel for sm_90; every CTA must
// get as many tiles. The driver assembles the text.
Status cycles_per_tile(Workbench& workbench, const Problem& problem, double* cycles);

}  // namespace flashback::micro
