// Pieces of synchronisation of our kernels left out or weakened, one at a time: noticed, or known to be
// spare. Here a sample of them; without --sample the command tries all.
#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;

class Mutation : public Command, public ::testing::WithParamInterface<const char*> {};

TEST_P(Mutation, IsKilledOrExplained) {
  const Outcome outcome = run(std::string("check backward --mutate --sample 30 --json ") + GetParam());
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  ASSERT_EQ(report["checked"].size(), 1u);
  int killed = 0;
  for (const Json& mutant : report["checked"][0]["mutants"]) {
    EXPECT_TRUE(mutant["reached"]) << mutant;
    killed += mutant["killed_by"] != "";
  }
  EXPECT_EQ(report["checked"][0]["mutants"].size(), 30u);
  EXPECT_GT(killed, 15);
}

std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
  std::string name;
  for (const char* c = info.param; *c != 0; ++c)
    name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation,
                         ::testing::Values("--variants aliased/cta --seed 1",
                                           "--variants split/warp --seed 2", "--arch sm90 --causal --seed 3"),
                         name_of);

}  // namespace
}  // namespace flashback::program
