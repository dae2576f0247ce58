// How fast the emulator is: a backward pass on one core, functional, with its one exact matrix arithmetic,
// and the same with the checker watching.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attention/problem.h"

namespace flashback::bench {

struct EmulatorSpeed {
  Problem problem;
  std::vector<std::string> entries;     // of a run, in order
  std::int64_t tiles = 0;               // 128 x 128 x 64 steps of a run
  std::uint64_t warp_instructions = 0;  // of a run, all entries
  // Of each run, ascending. Speeds go by CPU time: what others do on the core does not count.
  std::vector<double> cpu_seconds, wall_seconds;
  std::vector<double> checked_cpu_seconds;  // of passes under the checker, each behind one of the others
  std::int64_t peak_bytes = 0;              // of the process
  std::string cpu;
  bool avx512 = false;  // what the emulator chooses where the CPU has it

  static double median(const std::vector<double>& seconds) { return seconds[seconds.size() / 2]; }
  double tiles_per_s_core() const { return double(tiles) / median(cpu_seconds); }
  double warp_instructions_per_s_core() const { return double(warp_instructions) / median(cpu_seconds); }
  double checked_ratio() const { return median(checked_cpu_seconds) / median(cpu_seconds); }
};

// `runs` timed runs after one that warms up; `began` hears of each, the first included. Throws
// program::Failure.
EmulatorSpeed measure_emulator(int runs, const std::function<void()>& began);

}  // namespace flashback::bench
