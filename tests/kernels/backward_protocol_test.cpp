// What the variants differ in, counted from the emulator's events, and that no schedule of the asynchronous
// units changes a bit.
#include <gtest/gtest.h>

#include <map>

#include "emulator/machine/warp.h"
#include "emulator/workbench.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {
namespace {

using emulator::Completion;
using emulator::make_workbench;

// Counts, for the main kernel, each warp's executions of an opcode; of bar.sync for one barrier id.
class Counter : public emulator::Observer {
 public:
  void launch_began(const emulator::Program& program) override {
    program_ = program.name.starts_with("backward") ? &program : nullptr;
  }
  void executed(const emulator::Warp& warp, const emulator::Step& step, emulator::LaneMask) override {
    if (!program_) return;
    const std::string& form = program_->forms[step.form];
    ++executions[form][warp.index()];
    if (form == "bar.sync") ++barriers[warp.lanes<std::uint32_t>(step.a)[0]][warp.index()];
  }

  std::map<std::string, std::map<int, int>> executions;  // by opcode and warp
  std::map<int, std::map<int, int>> barriers;            // by id and warp

 private:
  const emulator::Program* program_ = nullptr;
};

emulator::MachineOptions watched_by(Counter& counter) {
  emulator::MachineOptions options;
  options.observer = &counter;
  return options;
}

struct Variant {
  const char* name;
  int compute_wide_barriers;  // a query tile
};

class BackwardProtocol : public ::testing::TestWithParam<Variant> {};

TEST_P(BackwardProtocol, ExecutesItsNumberOfComputeWideBarriers) {
  for (int tiles : {1, 3}) {
    const Shape s = {1, 1, 128 * tiles, 128, false};
    Counter counter;
    const auto bench = make_workbench(watched_by(counter));
    run(*bench, s, make_inputs(s, 1), GetParam().name);
    for (int warp = 0; warp < backward::kThreads / 32; ++warp) {
      const bool computes = backward::role_of(warp) == backward::Role::kCompute;
      EXPECT_EQ(counter.barriers[backward::kComputeBarrier][warp],
                computes ? tiles * GetParam().compute_wide_barriers : 0)
          << "warp " << warp;
    }
  }
}

TEST_P(BackwardProtocol, IssuesEveryProductOnceFromOneWarp) {
  constexpr int kTiles = 3;
  const Shape s = {1, 1, 128 * kTiles, 128, false};
  Counter counter;
  const auto bench = make_workbench(watched_by(counter));
  run(*bench, s, make_inputs(s, 1), GetParam().name);
  // S and dP in four steps; dV, dK and dQ in eight.
  auto products = counter.executions["tcgen05.mma.cta_group::1.kind::f16"];
  EXPECT_EQ(products.size(), 1u);
  EXPECT_EQ(products[backward::kMultiplyWarp], kTiles * (2 * 4 + 3 * 8));
  // A tile: s_full, dp_full, dq_full, of dV and of dK one each; p_empty where P is apart.
  const bool split = std::string(GetParam().name).starts_with("split");
  auto commits = counter.executions["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"];
  EXPECT_EQ(commits[backward::kMultiplyWarp], kTiles * (split ? 6 : 5));
}

INSTANTIATE_TEST_SUITE_P(Variants, BackwardProtocol,
                         ::testing::Values(Variant{"aliased_cta", 5}, Variant{"aliased_warp", 3},
                                           Variant{"split_cta", 3}, Variant{"split_warp", 0}),
                         [](const auto& info) { return std::string(info.param.name); });

class BackwardSchedule : public ::testing::TestWithParam<const char*> {};

TEST_P(BackwardSchedule, ChangesNoBitOfOneCta) {
  // One tile of keys: nothing is added to dQ in an order that the schedule could change.
  for (const Shape& s : {Shape{1, 1, 600, 100, false}, Shape{1, 1, 600, 100, true}}) {
    const Inputs in = make_inputs(s, 1);
    const Gradients eager = run(*make_workbench({}), s, in, GetParam());
    const auto with = [&](emulator::Schedule schedule) {
      emulator::MachineOptions options;
      options.schedule = schedule;
      return run(*make_workbench(options), s, in, GetParam());
    };
    EXPECT_TRUE(with({.completion = Completion::kLazy}) == eager) << "lazy";
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const std::uint32_t slice = seed % 2 ? 0 : 7;
      EXPECT_TRUE(with({.completion = Completion::kRandom, .seed = seed, .slice = slice}) == eager)
          << "seed " << seed << ", slice " << slice;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, BackwardSchedule,
                         ::testing::Values("aliased_cta", "aliased_warp", "split_cta", "split_warp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace flashback::testing
