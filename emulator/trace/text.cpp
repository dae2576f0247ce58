#include <fmt/format.h>

#include "emulator/trace/lanes.h"

namespace flashback::emulator::trace {

std::string text(std::span<const Run> runs) {
  std::string out;
  for (const Run& run : runs) {
    const SteadyTile tile = steady_tile(run);
    out += fmt::format("{}: ", run.title);
    out += tile.cycles > 0
               ? fmt::format("tile {:.0f} cycles ({}, median of {})\n", tile.cycles, run.word, tile.tiles)
               : "fewer than three tiles\n";
    out += "  begins of a tile's sections, the first of its own at 0\n";
    for (const Beginning& beginning : beginnings(run))
      out += fmt::format("    {:>7.0f}  {}\n", beginning.cycles, beginning.who);
    const std::vector<PathStep> path = critical_path(run);
    if (!path.empty()) out += "  cycles of a tile on its critical path\n";
    for (const PathStep& step : path) out += fmt::format("    {:>7.0f}  {}\n", step.cycles, step.what);
    const double end = tile.cycles > 0 ? tile.begin + tile.cycles : run.outcome.cycles;
    for (const Lane& lane : lanes_of(run)) {
      out += fmt::format("  {}\n", lane.name);
      for (const Bar& bar : lane.bars) {
        if (bar.begin < tile.begin || bar.begin >= end) continue;
        out += fmt::format("    {:>7.0f} {:>6.0f}  {}{}\n", bar.begin - tile.begin, bar.end - bar.begin,
                           bar.waits ? "waits for " : "", bar.waits ? bar.waits_for : bar.name);
      }
    }
    for (const timing::Meeting& meeting : run.timeline.meetings) {
      if (meeting.time < tile.begin || meeting.time >= end) continue;
      out += fmt::format("  {:>9.0f}  barrier {} of {} warps\n", meeting.time - tile.begin, meeting.barrier,
                         meeting.warps);
    }
  }
  return out;
}

}  // namespace flashback::emulator::trace
