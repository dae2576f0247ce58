// The suites `backward` and `forward`: ours and its peers at every cell, checked before they are timed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/cell.h"
#include "bench/cell_data.h"
#include "bench/protocol.h"
#include "bench/slice.h"

namespace flashback::bench {

// Two right implementations in bf16 differ by the roundings of P and dS, and of what they write: each lies
// about 2.6e-3 from double precision, so 3.7e-3 apart where the errors are independent. A tile that is wrong
// is off by its own size.
inline constexpr double kMostTensorDistance = 5e-3, kMostBlockDistance = 2e-2;

struct Check {
  std::optional<SliceVerdicts> slice;  // where its references fit
  Distances from_first;                // the first contender's from themselves: numbers, or not
  std::string wrong;                   // empty, or a sentence
};

struct ContenderResult {
  std::string name;
  Check check;
  std::vector<Timing> timings;  // of each protocol; none where a check went wrong
};

struct CellResult {
  Cell cell;
  std::vector<ContenderResult> contenders;

  // Empty, or what is wrong in a sentence; nothing has been timed then.
  std::string wrong() const;
};

struct PassSuite {
  std::vector<Cell> cells;
  std::vector<Protocol> protocols;
  std::size_t flush_bytes = std::size_t{512} << 20;  // ten times the L2 cache of an H200, four of a B200
  int threads = 0;                                   // of the references; 0: one for each core
};

// `contenders` are at least one; the first is whom the others are compared with. `sensors` may be null.
// `began` hears of each cell. Throws a Failure.
std::vector<CellResult> measure_passes(Workbench& workbench, const PassSuite& suite,
                                       const std::vector<Contender*>& contenders, GpuSensors* sensors,
                                       const std::function<void(const Cell&)>& began);

}  // namespace flashback::bench
