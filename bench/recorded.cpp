#include "bench/recorded.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "attention/reference/inputs.h"
#include "attention/reference/rounding.h"
#include "emulator/workbench.h"
#include "program/device_run.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

namespace timing = emulator::timing;

constexpr int kTile = 128;

// One head of `rows` by `keys`. out is dout and lse the logarithm of the row count: nothing waits for values.
program::DeviceInputs inputs_of(const Problem& problem) {
  const reference::Inputs inputs = reference::make_inputs(reference::Data::kNormal, problem.shape,
                                                          problem.dtype, effective_scale(problem), 0);
  const auto bits = [&](const std::vector<float>& values) {
    return reference::to_bits(problem.dtype, values);
  };
  const auto rows = static_cast<std::size_t>(problem.shape.seqlen_q);
  return {bits(inputs.q),
          bits(inputs.k),
          bits(inputs.v),
          bits(inputs.dout),
          bits(inputs.dout),
          std::vector<float>(rows * static_cast<std::size_t>(problem.shape.heads),
                             std::log(static_cast<float>(rows)))};
}

std::vector<timing::Recording> run(Arch arch, const Problem& problem, const std::set<std::uint64_t>& ctas) {
  timing::Recorder recorder("backward_", [&](std::uint64_t cta) { return ctas.contains(cta); });
  emulator::MachineOptions options;
  options.arch = arch;
  options.threads = 1;
  options.observer = &recorder;
  const std::unique_ptr<Workbench> workbench = emulator::make_workbench(options);
  program::run_on(*workbench, true, problem, inputs_of(problem));
  if (!recorder.error().empty()) throw program::Failure(program::kInternal, recorder.error());
  return recorder.take();
}

}  // namespace

Recordings record(Arch arch, const Problem& problem, std::span<const int> trip_counts) {
  Recordings recordings;
  Problem small = problem;
  const std::int64_t group = problem.shape.heads / problem.shape.kv_heads;
  if (problem.mask == Mask::kCausal && arch == Arch::kSm100) {
    // The tile of keys k of n meets n - k tiles of rows, and is the k-th CTA.
    const int most = *std::max_element(trip_counts.begin(), trip_counts.end());
    small.shape = {.heads = group, .seqlen_q = kTile * most, .seqlen_k = kTile * most};
    std::set<std::uint64_t> ctas;
    for (int trips : trip_counts) ctas.insert(static_cast<std::uint64_t>(most - trips));
    for (timing::Recording& recording : run(arch, small, ctas)) {
      const int trips = most - static_cast<int>(recording.cta);
      recordings.emplace(trips, std::move(recording));
    }
    return recordings;
  }
  for (int trips : trip_counts) {
    // One tile of keys; under a causal mask the square, whose first tile of keys meets every tile of rows.
    const int key_tiles = problem.mask == Mask::kCausal ? trips : 1;
    small.shape = {.heads = group, .seqlen_q = kTile * trips, .seqlen_k = kTile * key_tiles};
    std::vector<timing::Recording> one = run(arch, small, {0});
    if (one.size() != 1) throw program::Failure(program::kInternal, "the recorded launch has no first CTA");
    recordings.emplace(trips, std::move(one.front()));
  }
  return recordings;
}

}  // namespace flashback::bench
