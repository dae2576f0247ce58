// Deterministic mode gives the same bits whatever the order in which CTAs start, asynchronous work completes
// and reductions take effect, in every variant; and the default mode does not, so that this could be seen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "attention/reference/rounding.h"
#include "emulator/workbench.h"
#include "program/device_run.h"

namespace flashback::program {
namespace {

using emulator::Completion;
using emulator::Schedule;

struct Case {
  std::string name;
  Shape shape;
  Mask mask;
  Lengths lengths = {};
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  return {
      {"dense", {1, 2, 2, 300, 520, 64}, Mask::kDense},
      {"causal", {2, 2, 2, 520, 520, 64}, Mask::kCausal},
      {"causal_more_queries", {1, 1, 1, 700, 300, 64}, Mask::kCausal},
      {"window", {1, 2, 2, 700, 700, 64}, {200, 0}},
      {"window_both_sides", {1, 2, 2, 400, 700, 64}, {130, 150}},
      {"window_to_the_left", {1, 2, 2, 400, 500, 64}, {300, kUnlimited}},
      {"groups", {1, 6, 2, 300, 300, 64}, Mask::kDense},
      {"groups_causal", {1, 4, 1, 300, 400, 64}, Mask::kCausal},
      {"packed_groups",
       {4, 4, 2, 560, 800, 64},
       Mask::kCausal,
       {{0, 260, 260, 300, 560}, {0, 300, 301, 350, 800}, {}, {}}},
      {"128_channels", {1, 4, 2, 300, 400, 128}, Mask::kCausal},
      {"more_ctas_than_multiprocessors", {1, 40, 40, 140, 500, 64}, Mask::kCausal},
  };
}

class Runs {
 protected:
  explicit Runs(const Case& c) {
    problem_.shape = c.shape;
    problem_.mask = c.mask;
    problem_ = with_lengths(problem_, c.lengths);
    Shape memory = problem_.shape;
    if (!c.lengths.cu_seqlens_q.empty()) memory.batch = 1;
    const auto made = reference::make_inputs(reference::Data::kNormal, memory, Dtype::kBf16, 0.125, 4);
    const auto bits = [](const auto& values) { return reference::to_bits(Dtype::kBf16, values); };
    // Of no forward pass; what the order of sums does to them shows as well.
    inputs_ = {bits(made.q), bits(made.k), bits(made.v), bits(made.dout), bits(made.dout), {}};
    inputs_.lse.assign(static_cast<std::size_t>(memory.batch * memory.heads * memory.seqlen_q), 6.0f);
    inputs_.lengths = c.lengths;
  }

  DeviceGradients run(const Schedule& schedule, TensorMemory memory, Signal signal, bool deterministic = true,
                      Arch arch = Arch::kSm100) {
    emulator::MachineOptions options;
    options.arch = arch;
    options.schedule = schedule;
    const std::unique_ptr<Workbench> workbench = emulator::make_workbench(options);
    problem_.tensor_memory = memory;
    problem_.signal = signal;
    problem_.deterministic = deterministic;
    return run_on(*workbench, true, problem_, inputs_);
  }

  static Schedule shuffled(std::uint64_t seed) {
    return {
        .completion = Completion::kRandom, .seed = seed, .shuffle_ctas = true, .slice = seed % 2 ? 0u : 50u};
  }
  static bool same(const DeviceGradients& a, const DeviceGradients& b) {
    return a.dq == b.dq && a.dk == b.dk && a.dv == b.dv;
  }

  Problem problem_;
  DeviceInputs inputs_;
};

class Deterministic : public Runs, public testing::TestWithParam<Case> {
 protected:
  Deterministic() : Runs(GetParam()) {}
};

TEST_P(Deterministic, BitsDependOnNothing) {
  const bool wide = GetParam().shape.head_dim > 64;  // one map of tensor memory, called by the default
  const DeviceGradients first = run({}, wide ? TensorMemory::kSplit : TensorMemory::kAliased, Signal::kCta);
  EXPECT_TRUE(same(run({.completion = Completion::kLazy}, TensorMemory::kSplit, Signal::kWarp), first))
      << "lazy";
  std::uint64_t seed = 1;
  for (TensorMemory memory : {TensorMemory::kAliased, TensorMemory::kSplit}) {
    if (wide) memory = TensorMemory::kSplit;
    for (Signal signal : {Signal::kCta, Signal::kWarp}) {
      EXPECT_TRUE(same(run(shuffled(seed++), memory, signal), first)) << name(memory) << " " << name(signal);
    }
  }
}

// Many tiles of keys, so that sums in another order are seen after they are rounded.
class NotDeterministic : public Runs, public testing::Test {
 protected:
  NotDeterministic() : Runs({"dense", {1, 2, 2, 600, 1000, 64}, Mask::kDense}) {}
};

TEST_F(NotDeterministic, IsTheDefaultMode) {
  const DeviceGradients first = run({}, TensorMemory::kSplit, Signal::kWarp, false);
  bool differs = false;
  for (std::uint64_t seed = 1; seed < 9 && !differs; ++seed)
    differs = !same(run(shuffled(seed), TensorMemory::kSplit, Signal::kWarp, false), first);
  EXPECT_TRUE(differs);
}

// Hopper has no variants, and query heads in parts whose dK and dV are sums too.
std::vector<Case> hopper_cases() {
  std::vector<Case> all = cases();
  all.push_back({"parts_causal", {1, 9, 1, 260, 1100, 64}, Mask::kCausal});
  all.push_back({"parts_window", {1, 9, 1, 260, 1100, 64}, {200, 0}});
  return all;
}

class DeterministicSm90 : public Runs, public testing::TestWithParam<Case> {
 protected:
  DeterministicSm90() : Runs(GetParam()) {}
  DeviceGradients on_hopper(const Schedule& schedule, bool deterministic = true) {
    return run(schedule, TensorMemory::kSplit, Signal::kWarp, deterministic, Arch::kSm90);
  }
};

TEST_P(DeterministicSm90, BitsDependOnNothing) {
  const DeviceGradients first = on_hopper({});
  EXPECT_TRUE(same(on_hopper({.completion = Completion::kLazy}), first)) << "lazy";
  for (std::uint64_t seed = 1; seed < 5; ++seed)
    EXPECT_TRUE(same(on_hopper(shuffled(seed)), first)) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Cases, Deterministic, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Cases, DeterministicSm90, testing::ValuesIn(hopper_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace flashback::program
