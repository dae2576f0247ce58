// Every piece of synchronisation of our kernels left out or weakened, one at a time: noticed, or known to be
// spare.
#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;

class Mutation : public Command, public ::testing::WithParamInterface<const char*> {};

TEST_P(Mutation, IsKilledOrExplained) {
  const Outcome outcome = run(std::string("check backward --mutate --json ") + GetParam());
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const Json& checked : report["checked"]) {
    EXPECT_GT(checked["mutants"].size(), 20u);
    for (const Json& mutant : checked["mutants"]) {
      EXPECT_FALSE(mutant["killed_by"] == "" && mutant["reason"] == "")
          << checked["name"] << ", PTX line " << mutant["line"] << " " << mutant["instruction"] << " "
          << mutant["change"];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation,
                         ::testing::Values("--variants aliased/cta", "--variants aliased/warp",
                                           "--variants split/cta", "--variants split/warp"),
                         [](const auto& info) {
                           const char* names[] = {"aliased_cta", "aliased_warp", "split_cta", "split_warp"};
                           return std::string(names[info.index]);
                         });

}  // namespace
}  // namespace flashback::program
