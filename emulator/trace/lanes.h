// Which lanes a run has, and what stands in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/trace/trace.h"

namespace flashback::emulator::trace {

struct Bar {
  double begin = 0, end = 0;
  std::string name;  // of its section
  bool waits = false;
  std::string waits_for;  // who ended the wait
};

struct Lane {
  std::string name;
  bool of_warp = false;
  std::uint16_t warp = 0;  // then
  std::vector<Bar> bars;   // ascending; those of a unit may overlap
};

// When the passes of steady_tile begin, on its warp: all of the run, of which those from `from` up to `to`
// are between the middle passes.
struct TileBegins {
  std::uint16_t warp = 0;
  std::vector<double> times;
  std::size_t from = 0, to = 0;  // from < to where there are three
};
TileBegins tile_begins(const Run& run);

// The tensor core, copies, reductions, then the warps that have sections.
std::vector<Lane> lanes_of(const Run& run);

}  // namespace flashback::emulator::trace
