// Runs every text in instructions/ on the emulator. What such a text may say stands in instruction_case.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "emulator/machine/loaded_module.h"
#include "emulator/machine/machine.h"
#include "tests/emulator/machine/instruction_case.h"

namespace flashback::emulator::testing {
namespace {

namespace fs = std::filesystem;

class Buffers : public GlobalMemory {
 public:
  explicit Buffers(const InstructionCase& test) {
    for (const Field& field : test.fields) {
      memory_.push_back(memory_of(test, field));
      addresses_.push_back(reinterpret_cast<Address>(memory_.back().data()));
      if (field.kind == Field::Kind::kBuffer) by_name_[field.name] = memory_.size() - 1;
    }
    addresses_.resize(std::max<std::size_t>(addresses_.size(), 1));  // as module_of declares them
  }
  Range range_of(Address address) const override {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const Range range{addresses_[i], addresses_[i] + memory_[i].size()};
      if (range.holds(address, 1)) return range;
    }
    return {};
  }
  std::span<const std::byte> parameters() const { return std::as_bytes(std::span(addresses_)); }
  const std::vector<std::byte>& of_field(std::size_t i) const { return memory_[i]; }
  const std::vector<std::byte>& of_buffer(const std::string& name) const {
    return memory_[by_name_.at(name)];
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Address> addresses_;
  std::map<std::string, std::size_t> by_name_;
};

void run(const InstructionCase& test, bool lanes_apart, Completion completion) {
  const Arch arch = test.arch == "sm_90a" ? Arch::kSm90 : Arch::kSm100;
  const std::string ptx = module_of(test, arch == Arch::kSm90 ? "sm_90a" : "sm_100a", lanes_apart);
  Buffers buffers(test);
  Launch launch;
  launch.entry = "test";
  launch.grid.x = launch.cluster.x = test.cluster;
  launch.block.x = test.block;
  launch.shared_bytes = test.shared_bytes;
  launch.parameters = buffers.parameters();
  MachineOptions options;
  options.arch = arch;
  options.threads = 1;
  options.schedule.completion = completion;
  std::unique_ptr<LoadedModule> module;
  const Status loaded = LoadedModule::load(ptx, &module);
  ASSERT_TRUE(loaded.ok()) << loaded.sentence();
  const Status status = Machine(options).launch(*module, launch, buffers);
  if (!test.fault.empty()) {
    EXPECT_FALSE(status.ok()) << "expected the fault: " << test.fault;
    EXPECT_NE(status.sentence().find(test.fault), std::string::npos) << status.sentence();
    return;
  }
  ASSERT_TRUE(status.ok()) << status.sentence();
  for (std::size_t i = 0; i < test.fields.size(); ++i) {
    const Field& field = test.fields[i];
    if (field.kind == Field::Kind::kOut) {
      const std::string wrong = difference(test, field, buffers.of_field(i));
      EXPECT_TRUE(wrong.empty()) << wrong;
    }
    if (field.kind == Field::Kind::kAfter) {
      const std::string wrong = difference(test, field, buffers.of_buffer(field.name));
      EXPECT_TRUE(wrong.empty()) << wrong;
    }
  }
}

class InstructionTest : public ::testing::Test {
 public:
  explicit InstructionTest(fs::path path) : path_(std::move(path)) {}
  void TestBody() override {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    const InstructionCase test = parse_case(text.str());
    for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
      const std::string where =
          fmt::format("{}, completion {}", path_.string(), static_cast<int>(completion));
      {
        SCOPED_TRACE(where + ", lanes together");
        run(test, false, completion);
      }
      if (!test.converged) {
        SCOPED_TRACE(where + ", odd and even lanes apart");
        run(test, true, completion);
      }
    }
  }

 private:
  fs::path path_;
};

// A text that expects nothing would test nothing.
TEST(Instructions, EveryTextExpectsSomething) {
  for (const fs::path& path :
       fs::directory_iterator(FLASHBACK_SOURCE_DIR "/tests/emulator/machine/instructions")) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const InstructionCase test = parse_case(text.str());
    const bool compares = std::any_of(test.fields.begin(), test.fields.end(), [](const Field& f) {
      return f.kind == Field::Kind::kOut || f.kind == Field::Kind::kAfter;
    });
    EXPECT_TRUE(compares || !test.fault.empty()) << path;
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const fs::path& path :
       fs::directory_iterator(FLASHBACK_SOURCE_DIR "/tests/emulator/machine/instructions")) {
    if (path.extension() != ".ptx") continue;
    ::testing::RegisterTest("Instructions", path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [path]() -> ::testing::Test* { return new InstructionTest(path); });
  }
  return true;
}();

}  // namespace
}  // namespace flashback::emulator::testing
