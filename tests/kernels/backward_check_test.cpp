// The checker on our kernels: nothing to find, but for the two dependences on the order of issue that the
// aliased map has by design.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

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

// The text with the `which`-th barrier of all compute warps left out.
Defect without_guard(const std::string& variant, int which) {
  return {[=](std::string& ptx) {
            const std::string entry = ".entry backward_sm100_d64_bf16_dense_" + variant + "(";
            std::size_t at = ptx.find(entry);
            for (int i = 0; i <= which; ++i) at = ptx.find("bar.sync 3, 256;", at + 1);
            ASSERT_NE(at, std::string::npos);
            ptx.replace(at, 16, "");
          },
          {},
          {}};
}

// Figure 2 of the text that the kernel follows: P lies over S. Without the guard a warp of one compute group
// stores P into its 32 lanes while its partner of the other group, four warps away, may still read S there.
TEST(BackwardFigure2, StoringPOverSWithoutTheGuardIsFoundAsDrawn) {
  Defect defect = without_guard("aliased_warp", 0);
  const std::vector<Finding> findings = check({1, 1, 384, 128, false}, "aliased_warp", false, {}, &defect);
  ASSERT_FALSE(findings.empty());
  const std::string& sentence = findings[0].sentence;
  EXPECT_EQ(findings[0].rule, "tensor-race") << sentence;
  const auto number_behind = [&](const char* words) {
    const std::size_t at = sentence.find(words);
    return at == std::string::npos ? -1 : std::atoi(sentence.c_str() + at + std::strlen(words));
  };
  const int load = number_behind("tcgen05.ld of warp ");
  const int store = number_behind("tcgen05.st of warp ");
  const int first = number_behind("columns ");
  const int last = number_behind(" to ");
  const int lane = number_behind("lanes ");
  const int last_lane = number_behind(("lanes " + std::to_string(lane) + " to ").c_str());
  EXPECT_EQ(std::abs(load - store), 4) << sentence;
  EXPECT_EQ(lane, 32 * (load % 4)) << sentence;
  EXPECT_EQ(last_lane, lane + 31) << sentence;
  constexpr backward::TensorColumns kColumns = backward::kAliasedColumns;
  EXPECT_GE(first, int(kColumns.p.first)) << sentence;
  EXPECT_LT(last, int(kColumns.p.first) + 64) << sentence;
}

// dS over dP: of its two guards a tile, the first is needed and the second is not, as what it guards was read
// before the first.
TEST(BackwardFigure2, TheFirstGuardOfDsIsNeededAndTheSecondIsNot) {
  const Shape s = {1, 1, 384, 128, false};
  Defect first = without_guard("aliased_warp", 1), second = without_guard("aliased_warp", 2);
  const std::vector<Finding> findings = check(s, "aliased_warp", false, {}, &first);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].rule, "tensor-race") << findings[0].sentence;
  EXPECT_TRUE(check(s, "aliased_warp", false, {}, &second).empty());
}

// With P and dS in their own columns there is no guard and nothing to find.
TEST(BackwardFigure2, TheSplitMapHasNoGuards) {
  Defect look = {[](std::string& ptx) {
                   const std::size_t begin = ptx.find(".entry backward_sm100_d64_bf16_dense_split_warp(");
                   const std::size_t end = std::min(ptx.find(".entry ", begin + 1), ptx.size());
                   EXPECT_GE(ptx.find("bar.sync 3, 256;", begin), end);
                 },
                 {},
                 {}};
  EXPECT_TRUE(check({1, 1, 384, 128, false}, "split_warp", false, {}, &look).empty());
}

}  // namespace
}  // namespace flashback::testing
