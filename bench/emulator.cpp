#include "bench/emulator.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <memory>

#include "attention/reference/inputs.h"
#include "attention/reference/rounding.h"
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

}  // namespace

EmulatorSpeed measure_emulator(int runs, const std::function<void()>& began) {
  EmulatorSpeed speed;
  speed.problem.shape = {.seqlen_q = kRows, .seqlen_k = kRows};
  speed.tiles = kRows / kTile * (kRows / kTile);
  speed.cpu = cpu_name();
  speed.avx512 = __builtin_cpu_supports("x86-64-v4");
  const program::DeviceInputs inputs = device_inputs(speed.problem);
  std::unique_ptr<Workbench> workbench;
  if (const Status status = open_emulator(Arch::kSm100, 1, &workbench); !status.ok())
    program::refuse(status.sentence());
  for (int run = 0; run <= runs; ++run) {
    began();
    Executed before, after;
    program::require(workbench->executed(&before));
    const double start = process_seconds();
    const program::DeviceGradients gradients = program::run_on(*workbench, true, speed.problem, inputs);
    const double seconds = process_seconds() - start;
    program::require(workbench->executed(&after));
    speed.warp_instructions = after.warp_instructions - before.warp_instructions;
    speed.entries = gradients.entries;
    if (run == 0) continue;
    speed.cpu_seconds.push_back(seconds);
    speed.wall_seconds.push_back(gradients.seconds);
  }
  for (std::vector<double>* seconds : {&speed.cpu_seconds, &speed.wall_seconds})
    std::sort(seconds->begin(), seconds->end());
  return speed;
}

}  // namespace flashback::bench
