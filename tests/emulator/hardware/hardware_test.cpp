// Experiments on a GPU of compute capability 9.0: what it gives is what the golden files keep, what the texts
// expect, and what the emulator gives, within the bounds that the texts state. Skipped where there is no such
// GPU.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "emulator/workbench.h"
#include "tests/emulator/hardware/golden.h"

namespace flashback::emulator::testing {
namespace {

class Hardware : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status status = open_cuda(0, &gpu_); !status.ok()) GTEST_SKIP() << status.sentence();
    if (gpu_->arch() != Arch::kSm90) GTEST_SKIP() << "the CUDA device is not of compute capability 9.0";
  }
  // Calls f(experiment, results) for every module of every experiment.
  template <class F>
  void each_result(F&& f) {
    for (const Recipe& recipe : all_experiments(FLASHBACK_SOURCE_DIR)) {
      const Experiment experiment = recipe.build();
      for (const std::string& module : experiment.modules) {
        SCOPED_TRACE(experiment.name);
        Results results;
        const Status status = run(*gpu_, experiment, module, &results);
        ASSERT_TRUE(status.ok()) << status.sentence();
        f(experiment, results);
      }
    }
  }
  std::unique_ptr<Workbench> gpu_;
};

TEST_F(Hardware, GivesTheGoldenWords) {
  each_result([](Experiment experiment, const Results& results) {
    const std::optional<Golden> golden = read_golden(golden_path(FLASHBACK_SOURCE_DIR, experiment.name));
    if (!golden) return;
    EXPECT_EQ(difference(*golden, experiment, results), "");
  });
}

TEST_F(Hardware, GivesWhatTheTextsExpect) {
  for (const Recipe& recipe : text_experiments(FLASHBACK_SOURCE_DIR)) {
    const Experiment experiment = recipe.build();
    std::stringstream text;
    text << std::ifstream(FLASHBACK_SOURCE_DIR "/tests/emulator/machine/instructions/" + experiment.name +
                          ".ptx")
                .rdbuf();
    const InstructionCase test = parse_case(text.str());
    for (const std::string& module : experiment.modules) {
      SCOPED_TRACE(experiment.name);
      Results results;
      const Status status = run(*gpu_, experiment, module, &results);
      ASSERT_TRUE(status.ok()) << status.sentence();
      for (std::size_t i = 0; i < test.fields.size(); ++i) {
        const Field& field = test.fields[i];
        if (field.kind == Field::Kind::kOut) {
          EXPECT_EQ(difference(test, field, results[i]), "");
        }
        if (field.kind != Field::Kind::kAfter) continue;
        for (std::size_t j = 0; j < i; ++j) {
          if (experiment.buffers[j].name == field.name) {
            EXPECT_EQ(difference(test, field, results[j]), "");
          }
        }
      }
    }
  }
}

TEST_F(Hardware, AgreesWithTheEmulator) {
  MachineOptions options;
  options.arch = Arch::kSm90;
  const std::unique_ptr<Workbench> emulator = make_workbench(options);
  each_result([&](const Experiment& experiment, const Results& results) {
    Results emulated;
    const Status status = run(*emulator, experiment, experiment.modules[0], &emulated);
    ASSERT_TRUE(status.ok()) << status.sentence();
    EXPECT_EQ(difference(experiment, results, emulated), "");
  });
}

}  // namespace
}  // namespace flashback::emulator::testing
