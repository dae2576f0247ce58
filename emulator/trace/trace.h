// Pictures of a run, replayed or measured: a lane a unit and a warp, over time.
#pragma once

#include <span>
#include <string>

#include "emulator/timing/replay.h"

namespace flashback::emulator::trace {

struct Run {
  std::string title;
  std::string word = "predicted";  // or measured
  timing::Timeline timeline;
  timing::Outcome outcome;
};

// One pass through the main loop where it repeats itself: from one begin of the section that opens it to the
// next, on the warp with the most sections. The median of the middle passes.
struct SteadyTile {
  double cycles = 0;  // 0: the run has fewer than three passes
  double begin = 0;   // of a middle one
  int tiles = 0;      // that the median is of
};
SteadyTile steady_tile(const Run& run);

// When each section of a tile begins, the beginning of the tile's first one at 0: of the first warp of each
// warpgroup that has it, medians over the middle tiles, ascending. What works ahead comes long before its
// tile.
struct Beginning {
  std::string who;  // "warp 4: softmax"
  double cycles = 0;
};
std::vector<Beginning> beginnings(const Run& run);
// A sentence for each pair that begins in the other order than in `as`, where they are at least a twentieth
// of a tile apart, and for each beginning that one of the runs does not have. Warps that do the same have no
// order.
std::vector<std::string> other_order(const Run& run, const Run& as);

// The runs one below the other on one scale, a tile and a half of each.
std::string svg(std::span<const Run> runs);
// Trace events as Chrome and Perfetto load them; a cycle is a microsecond there.
std::string chrome_json(std::span<const Run> runs);
// A line a span of one tile.
std::string text(std::span<const Run> runs);

}  // namespace flashback::emulator::trace
