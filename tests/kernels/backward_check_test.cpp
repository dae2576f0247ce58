// The checker on our kernels: nothing to find, but for the two dependences on the order of issue that the
// aliased map has by design.
#include <gtest/gtest.h>

#include "emulator/check/checker.h"
#include "emulator/workbench.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {
namespace {

using emulator::Completion;
using emulator::checking::Checker;
using emulator::checking::Finding;

std::vector<Finding> check(const Shape& s, const std::string& variant, bool strict,
                           emulator::Schedule schedule, Defect* defect = nullptr) {
  Checker checker(strict);
  emulator::MachineOptions options;
  options.observer = &checker;
  options.schedule = schedule;
  run(*emulator::make_workbench(options), s, make_inputs(s, 1), variant, defect);
  return checker.findings();
}

class BackwardCheck : public ::testing::TestWithParam<const char*> {};

TEST_P(BackwardCheck, FindsNothing) {
  for (const Shape& s : {Shape{1, 1, 600, 100, false}, Shape{1, 1, 600, 100, true}}) {
    for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
      for (const Finding& finding : check(s, GetParam(), false, {.completion = completion, .seed = 3})) {
        ADD_FAILURE() << finding.rule << " x" << finding.count << ": " << finding.sentence;
      }
    }
  }
}

TEST_P(BackwardCheck, FindsOnlyTheOrderOfIssueOfAliasedColumnsWhenStrict) {
  const bool aliased = std::string(GetParam()).starts_with("aliased");
  std::vector<Finding> findings = check({1, 1, 600, 100, false}, GetParam(), true, {});
  EXPECT_EQ(findings.size(), aliased ? 2u : 0u);
  for (const Finding& finding : findings) {
    if (aliased && finding.rule == "mma-order") continue;
    ADD_FAILURE() << finding.rule << " x" << finding.count << ": " << finding.sentence;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, BackwardCheck,
                         ::testing::Values("aliased_cta", "aliased_warp", "split_cta", "split_warp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace flashback::testing
