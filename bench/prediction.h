// How long a pass would take on a chip that is not at hand: its main kernel's CTAs replayed under a cost
// table, spread over the multiprocessors in the order of the grid, with the small kernels around it by their
// bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/recorded.h"
#include "emulator/timing/costs.h"

namespace flashback::bench {

// Cycles of a CTA by its trip count: replayed where recorded, linear between and beyond.
class CtaTimes {
 public:
  CtaTimes() = default;
  CtaTimes(const Recordings& recordings, const emulator::timing::Costs& costs);
  double cycles(int trips) const;
  // Of one more tile in the steady state.
  double tile() const { return tile_; }

 private:
  std::vector<std::pair<int, double>> replayed_;  // ascending
  double tile_ = 0;
};

// The trip counts that a prediction needs.
inline constexpr int kTripCounts[] = {1, 2, 4, 8, 24};

struct Predicted {
  double seconds = 0;  // of all three kernels
  double tflops = 0;   // the published count: 2.5 times the forward's, half of it under a causal mask
  double tile_cycles = 0;
};
// `sequences` are the rows of each sequence, of q and of k alike; none: all have the shape's.
Predicted predict(Arch arch, const Problem& problem, const CtaTimes& times,
                  const emulator::timing::Costs& costs, std::vector<std::int64_t> sequences = {});

// A prediction with what the open constants leave open.
struct Interval {
  double nominal = 0;
  double low = 0, high = 0;  // 10 % and 90 % of all settings
  double least = 0, most = 0;
};
Interval interval_of(std::vector<double> values);  // the first is nominal

// Every combination of the open constants at low, nominal and high; the first is nominal throughout.
std::vector<emulator::timing::Costs> settings(Arch arch);

// Calls f(i) for i below n, on as many threads as there are cores.
void in_parallel(std::size_t n, const std::function<void(std::size_t)>& f);

}  // namespace flashback::bench
