// Pictures of a run, replayed or measured: a lane a unit and a warp, over time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "emulator/timing/dependences.h"
#include "emulator/timing/replay.h"

namespace flashback::emulator::trace {

struct Run {
  std::string title;
  std::string word = "predicted";  // or measured
  std::string note;                // what a picture says beside the title; may be empty
  timing::Timeline timeline;
  timing::Outcome outcome;
};

// One pass through the main loop where it repeats itself: from one begin of the section that opens it to the
// next, on the warp with the most sections. The median of the middle passes.
struct SteadyTile {
  double cycles = 0;  // 0: the run has fewer than three passes
  double begin = 0;   // of one that takes so long
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

// How the order in which a tile's sections begin stands to a predicted one, pair by pair.
struct Order {
  // Of pairs in which one section must come first, because its warp does it first or something has waited for
  // it: all, and those in which it does. The others are clocks that cannot be right.
  int dependent = 0, dependent_kept = 0;
  // Of the others, where time alone decides: those that the prediction has a twentieth of a tile apart or
  // more, and of these those in the predicted order.
  int free = 0, free_kept = 0;
  // A sentence for each pair in the other order, with the time between in both runs, and for each section
  // that one of the runs does not have.
  std::vector<std::string> differences;
};
Order compare_order(const Run& run, const Run& predicted, const timing::Dependences& dependences);

// What a tile takes its time for: backwards from the end of a middle tile, always to what was waited for
// last, to the begin of another. What lies beside that path takes no time. Empty for a run that was not
// replayed: clocks do not say who ended a wait, and when.
struct PathStep {
  std::string what;   // "warps: softmax", "tensor core: dP", "signals"
  double cycles = 0;  // a tile; together they are the mean tile
};
std::vector<PathStep> critical_path(const Run& run);  // the longest first

// A section's colour, "#rrggbb".
struct Colour {
  std::string_view section, value;
};

// The runs one below the other on one scale, a tile and a third of each. `colours` has the sections in the
// order of the legend; one that it has not is black.
std::string svg(std::span<const Run> runs, std::span<const Colour> colours);
// Trace events as Chrome and Perfetto load them; a cycle is a microsecond there.
std::string chrome_json(std::span<const Run> runs);
// A line a span of one tile.
std::string text(std::span<const Run> runs);

}  // namespace flashback::emulator::trace
