// The main kernel of a backward pass, recorded by the functional emulator: one CTA a trip count.
#pragma once

#include <map>
#include <span>

#include "attention/problem.h"
#include "emulator/timing/recording.h"

namespace flashback::bench {

// By trip count: tiles of query rows that the CTA's tile of keys meets.
using Recordings = std::map<int, emulator::timing::Recording>;

// Runs small problems of `problem`'s kernel and variant, with as many query tiles as asked. Throws
// program::Failure.
Recordings record(Arch arch, const Problem& problem, std::span<const int> trip_counts);

}  // namespace flashback::bench
