#include "bench/emulator.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <memory>

#include "attention/reference/inputs.h"
#include "attention/reference/rounding.h"
#include "emulator/check/checker.h"
#include "emulator/workbench.h"
#include "program/device_run.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

constexpr std::int64_t kRows = 2048;  // 256 tiles: a few tenths of a second
constexpr std::int64_t kTile = 128;

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// out is dout and lse the logarithm of the row count: the time does not depend on the values.
program::DeviceInputs device_inputs(const Problem& problem) {
  const reference::Inputs inputs = reference::make_inputs(reference::Data::kNormal, problem.shape,
                                                          problem.dtype, effective_scale(problem), 0);
  const auto bits = [&](const std::vector<float>& values) {
    return reference::to_bits(problem.dtype, values);
  };
  return {bits(inputs.q),    bits(inputs.k),    bits(inputs.v),
          bits(inputs.dout), bits(inputs.dout), std::vector<float>(kRows, std::log(float(kRows)))};
}

double process_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

std::int64_t peak_bytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} << 10;
}

}  // namespace

EmulatorSpeed measure_emulator(int runs, const std::function<void()>& began) {
  EmulatorSpeed speed;
  speed.problem.shape = {.seqlen_q = kRows, .seqlen_k = kRows};
  speed.tiles = kRows / kTile * (kRows / kTile);
  speed.cpu = cpu_name();
  speed.avx512 = __builtin_cpu_supports("x86-64-v4");
  const program::DeviceInputs inputs = device_inputs(speed.problem);
  emulator::checking::Checker checker(false);
  emulator::MachineOptions options;
  options.threads = 1;
  const std::unique_ptr<Workbench> alone = emulator::make_workbench(options);
  options.observer = &checker;
  const std::unique_ptr<Workbench> watched = emulator::make_workbench(options);
  const auto run_on = [&](Workbench& workbench, std::vector<double>* cpu_seconds) {
    const double start = process_seconds();
    program::DeviceGradients gradients = program::run_on(workbench, true, speed.problem, inputs);
    cpu_seconds->push_back(process_seconds() - start);
    return gradients;
  };
  for (int run = 0; run <= runs; ++run) {
    began();
    Executed before, after;
    program::require(alone->executed(&before));
    const program::DeviceGradients gradients = run_on(*alone, &speed.cpu_seconds);
    program::require(alone->executed(&after));
    speed.warp_instructions = after.warp_instructions - before.warp_instructions;
    speed.entries = gradients.entries;
    speed.wall_seconds.push_back(gradients.seconds);
    run_on(*watched, &speed.checked_cpu_seconds);
  }
  for (std::vector<double>* seconds : {&speed.cpu_seconds, &speed.wall_seconds, &speed.checked_cpu_seconds}) {
    seconds->erase(seconds->begin());  // warmed up
    std::sort(seconds->begin(), seconds->end());
  }
  speed.peak_bytes = peak_bytes();
  return speed;
}

}  // namespace flashback::bench
