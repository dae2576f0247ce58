#include "bench/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "attention/launch.h"
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
  small.q_sequences = small.k_sequences = {};
  // Two query heads of a group run what any number of them runs.
  const std::int64_t group = std::min<std::int64_t>(problem.shape.heads / problem.shape.kv_heads, 2);
  const auto square = [&](std::int64_t tiles) {
    small.shape = {.heads = group,
                   .seqlen_q = kTile * tiles,
                   .seqlen_k = kTile * tiles,
                   .head_dim = problem.shape.head_dim};
  };
  const auto keep = [&](int trips, timing::Recording recording) {
    recordings.emplace(trips, std::move(recording));
  };
  const auto only = [](std::vector<timing::Recording> one) {
    if (one.size() != 1) throw program::Failure(program::kInternal, "the recorded launch has no such CTA");
    return std::move(one.front());
  };
  const MaskKind kind = kind_of(problem.mask);
  if (kind == MaskKind::kCausal && arch == Arch::kSm100) {
    // The tile of keys k of n meets n - k tiles of rows; it is the k-th CTA, in deterministic mode from the
    // end.
    const int most = *std::max_element(trip_counts.begin(), trip_counts.end());
    square(most);
    std::set<std::uint64_t> ctas;
    for (int trips : trip_counts)
      ctas.insert(std::uint64_t(problem.deterministic ? trips - 1 : most - trips));
    for (timing::Recording& recording : run(arch, small, ctas)) {
      const int cta = static_cast<int>(recording.cta);
      keep(problem.deterministic ? cta + 1 : most - cta, std::move(recording));
    }
  } else {
    for (int trips : trip_counts) {
      // One tile of keys; under a mask the square, whose first tile of keys meets every tile of rows.
      square(trips);
      if (kind == MaskKind::kDense) small.shape.seqlen_k = kTile;
      if (kind == MaskKind::kWindow) small.mask = {kTile * (trips - 1), 0};
      const bool backwards = kind == MaskKind::kWindow && problem.deterministic && arch == Arch::kSm100;
      keep(trips, only(run(arch, small, {backwards ? std::uint64_t(trips - 1) : 0})));
    }
  }
  // The small problem ran the kernel of the large one; more tiles are more work: the CTAs were those that
  // they were taken for.
  Plan plan;
  program::require(make_plan(arch, problem, &plan));
  std::size_t before = 0;
  for (const auto& [trips, recording] : recordings) {
    if (recording.kernel->name != plan.kernel->main.name) {
      throw program::Failure(program::kInternal, fmt::format("{} was recorded, and the problem runs {}",
                                                             recording.kernel->name, plan.kernel->main.name));
    }
    std::size_t events = 0;
    for (const timing::Stream& stream : recording.warps) events += stream.events.size();
    if (events <= before) {
      throw program::Failure(
          program::kInternal,
          fmt::format("the CTA recorded for {} tiles does no more than one for fewer", trips));
    }
    before = events;
  }
  return recordings;
}

}  // namespace flashback::bench
