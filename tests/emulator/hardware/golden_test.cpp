// The emulator against what an H200 gave (golden/), under each order of completion.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "emulator/workbench.h"
#include "tests/emulator/hardware/full_sweep.h"
#include "tests/emulator/hardware/golden.h"
#include "tests/emulator/hardware/pages.h"

namespace flashback::emulator::testing {
namespace {

class GoldenTest : public ::testing::Test {
 public:
  explicit GoldenTest(const Recipe* recipe) : recipe_(*recipe) {}
  void TestBody() override {
    const Experiment experiment = recipe_.build();
    const std::optional<Golden> golden = read_golden(golden_path(FLASHBACK_SOURCE_DIR, experiment.name));
    ASSERT_TRUE(golden);
    for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
      MachineOptions options;
      options.arch = Arch::kSm90;
      options.threads = 1;
      options.schedule.completion = completion;
      const std::unique_ptr<Workbench> workbench = make_workbench(options);
      for (std::size_t m = 0; m < experiment.modules.size(); ++m) {
        Results results;
        const Status status = run(*workbench, experiment, experiment.modules[m], &results);
        ASSERT_TRUE(status.ok()) << status.sentence();
        const std::string wrong = difference(*golden, experiment, results);
        ASSERT_EQ(wrong, "") << "module " << m << ", completion " << static_cast<int>(completion);
      }
    }
  }

 private:
  const Recipe& recipe_;
};

const std::vector<Recipe>& experiments() {
  static const std::vector<Recipe> all = all_experiments(FLASHBACK_SOURCE_DIR);
  return all;
}

TEST(GoldenFiles, EachIsOfAnExperiment) {
  std::set<std::string> names;
  for (const Recipe& experiment : experiments()) {
    EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name << " is the name of two experiments";
  }
  for (const auto& file :
       std::filesystem::directory_iterator(FLASHBACK_SOURCE_DIR "/tests/emulator/hardware/golden")) {
    if (file.is_directory()) continue;  // full sweeps
    EXPECT_TRUE(names.count(file.path().stem())) << file.path();
  }
}

// All that the Hopper kernels and the programs of others execute has been compared.
TEST(GoldenFiles, CoverWhatIsUsed) {
  const std::vector<UsedOpcode> opcodes = opcodes_to_compare(FLASHBACK_SOURCE_DIR);
  EXPECT_GT(opcodes.size(), 200u);
  for (const UsedOpcode& row : opcodes)
    EXPECT_TRUE(!row.equal.empty() || !row.bounded.empty())
        << row.opcode << " was never compared with an H200";
}

// One block in 128 of the sweeps over all words; `hardware_tool sweep` compares all.
TEST(FullSweep, BlocksAreThoseOfAnH200) {
  MachineOptions options;
  options.arch = Arch::kSm90;
  options.threads = 1;
  const std::unique_ptr<Workbench> workbench = make_workbench(options);
  for (const std::string& function : swept_functions()) {
    const std::vector<std::uint64_t> right = read_full_sweep(full_sweep_path(FLASHBACK_SOURCE_DIR, function));
    ASSERT_EQ(right.size(), kSweepBlocks) << function;
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t block = 31; block < kSweepBlocks; block += 128) blocks.push_back(block);
    Status status;
    const std::vector<std::uint64_t> emulated = sweep_digests({workbench.get()}, function, blocks, &status);
    ASSERT_TRUE(status.ok()) << status.sentence();
    for (std::size_t i = 0; i < blocks.size(); ++i)
      EXPECT_EQ(emulated[i], right[blocks[i]]) << function << ", block " << blocks[i];
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Recipe& experiment : experiments()) {
    // Without a golden file, docs/emulator/hardware.md says that it is not compared yet.
    if (!std::filesystem::exists(golden_path(FLASHBACK_SOURCE_DIR, experiment.name))) continue;
    ::testing::RegisterTest("Golden", experiment.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&experiment]() -> ::testing::Test* { return new GoldenTest(&experiment); });
  }
  return true;
}();

}  // namespace
}  // namespace flashback::emulator::testing
