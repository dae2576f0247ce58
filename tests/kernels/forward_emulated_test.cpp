// The forward kernels, run by the emulator from their PTX, whenever asynchronous work takes effect.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "tests/kernels/forward_run.h"

namespace flashback::testing {
namespace {

class ForwardEmulated : public ::testing::TestWithParam<std::tuple<Arch, bool>> {
 protected:
  std::unique_ptr<Workbench> bench(emulator::Completion completion, std::uint64_t seed = 0) const {
    return bench_of(std::get<0>(GetParam()), completion, seed);
  }
  const bool causal_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, ForwardEmulated,
                         ::testing::Combine(::testing::Values(Arch::kSm100, Arch::kSm90), ::testing::Bool()),
                         [](const auto& info) {
                           return forward_kernel(std::get<0>(info.param)).arch +
                                  (std::get<1>(info.param) ? "_causal" : "_dense");
                         });

TEST_P(ForwardEmulated, IsRightWheneverWorkTakesEffect) {
  const Shape s = {1, 3, 400, 700, causal_};
  const Inputs in = make_inputs(s, 1);
  const Judge judge(s, in);
  const Outputs first = run_forward(*bench(emulator::Completion::kEager), s, in, 4, 1);
  EXPECT_TRUE(judge.right(first));
  EXPECT_EQ(run_forward(*bench(emulator::Completion::kLazy), s, in, 4, 1), first);
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    EXPECT_EQ(run_forward(*bench(emulator::Completion::kRandom, seed), s, in, 4, 1), first) << seed;
}

// One CTA that does everything, as many as items, more than items; sections that leave a rest.
TEST_P(ForwardEmulated, AnyGridAndSectionDoTheSame) {
  const Shape s = {2, 3, 200, 257, causal_};
  const Inputs in = make_inputs(s, 2);
  const auto machine = bench(emulator::Completion::kEager);
  const Outputs first = run_forward(*machine, s, in, 12, 1);
  EXPECT_TRUE(Judge(s, in).right(first));
  for (const auto& [ctas, section] : {std::pair{1, 1}, {1, 4}, {5, 6}, {12, 4}, {20, 2}})
    EXPECT_EQ(run_forward(*machine, s, in, ctas, section), first) << ctas << " CTAs, sections of " << section;
}

}  // namespace
}  // namespace flashback::testing
