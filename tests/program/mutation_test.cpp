// Pieces of synchronisation of our kernels left out or weakened, one at a time: noticed, or known to be
// spare. Here a sample of every main kernel; `flashback check --mutate` tries all.
#include "program/survivors.h"
#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;

class MutationTest : public Command {};

TEST_F(MutationTest, OfEveryKernelIsKilledOrExplained) {
  constexpr std::size_t kOfEach = 2;
  const Outcome outcome = run("check --mutate --sample 2 --seed 1 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  // Main kernels of the table, and four for CTAs in pairs.
  const Json table = Json::parse(run("list --json").out);
  EXPECT_EQ(report["checked"].size(), table["kernels"].size() + 4);
  std::size_t killed = 0;
  for (const Json& kernel : report["checked"]) {
    EXPECT_EQ(kernel["mutants"].size(), kOfEach) << kernel["name"];
    for (const Json& mutant : kernel["mutants"]) {
      EXPECT_TRUE(mutant["reached"]) << mutant;
      killed += mutant["killed_by"] != "";
    }
  }
  EXPECT_GT(killed, kOfEach * report["checked"].size() / 2);
}

TEST_F(MutationTest, ThatNothingReachesIsAFinding) {
  // One key tile: nothing takes turns.
  const Outcome outcome = run("check backward --arch sm90 --seqlen-q 64 --seqlen-k 128 --mutate --sample 20");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("NOT REACHED"), std::string::npos) << outcome.out;
}

TEST_F(MutationTest, ASampleIsOfMutantsOfOurs) {
  expect_refused("check backward --sample 3", "--sample is 3, of mutants; without --mutate there are none");
  expect_refused(
      "check --mutate --ptx kernel.ptx",
      "--ptx is kernel.ptx, but --mutate leaves out pieces of our own kernels; leave one of the two "
      "out");
}

TEST(Survivors, AReasonThatNoKernelHasAUseForIsStale) {
  SurvivorReasons reasons;
  const std::vector<std::string> all = reasons.stale();
  emulator::checking::Mutation fence;
  fence.instruction = "fence.mbarrier_init.release.cluster;";
  fence.change = "dropped";
  reasons.begin_kernel(Arch::kSm100, "backward_sm100_d64_bf16_dense_split_warp");
  EXPECT_TRUE(reasons.explain(fence));
  EXPECT_FALSE(reasons.explain(fence)) << "only one of them has a reason";
  EXPECT_EQ(reasons.stale().size(), all.size() - 1);
  reasons.begin_kernel(Arch::kSm100, "backward_sm100_d64_bf16_dense_split_cta");
  EXPECT_TRUE(reasons.explain(fence)) << "each kernel has its own";
}

}  // namespace
}  // namespace flashback::program
