// The probes run; what they measure needs a GPU.
#include "bench/micro/micro.h"
#include "attention/problem.h"

#include <gtest/gtest.h>

#include "attention/problem.h"
#include "emulator/workbench.h"

namespace flashback::micro {
namespace {

class Probes : public ::testing::TestWithParam<Arch> {};

TEST_P(Probes, RunOnTheEmulator) {
  emulator::MachineOptions options;
  options.arch = GetParam();
  const std::unique_ptr<Workbench> workbench = emulator::make_workbench(options);
  std::vector<Measured> measured;
  std::string last;
  const Status status = measure(
      *workbench, 0, [&](const std::string& probe) { last = probe; }, &measured);
  EXPECT_TRUE(status.ok()) << last << ": " << status.sentence();
  EXPECT_EQ(measured.size(), GetParam() == Arch::kSm100 ? 23u : 16u);
}
INSTANTIATE_TEST_SUITE_P(, Probes, ::testing::Values(Arch::kSm90, Arch::kSm100),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace flashback::micro
