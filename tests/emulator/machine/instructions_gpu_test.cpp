// The texts of instructions/ on the GPU: what the emulator is held to must be what the hardware does. Skips
// where there is no CUDA driver; a text of another architecture is left out.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "device/device.h"
#include "tests/emulator/machine/instruction_case.h"

namespace flashback::emulator::testing {
namespace {

namespace fs = std::filesystem;

Workbench* gpu() {
  static const std::unique_ptr<Workbench> workbench = [] {
    std::unique_ptr<Workbench> opened;
    return open_cuda(0, &opened).ok() ? std::move(opened) : nullptr;
  }();
  return workbench.get();
}

// Fields in the GPU's memory, released with the object.
class Buffers {
 public:
  explicit Buffers(const InstructionCase& test) {
    for (const Field& field : test.fields) {
      const std::vector<std::byte> memory = memory_of(test, field);
      Address address = 0;
      EXPECT_TRUE(gpu()->allocate(std::max<std::size_t>(memory.size(), 16), &address).ok());
      if (!memory.empty()) {
        EXPECT_TRUE(gpu()->upload(address, memory, nullptr).ok());
      }
      addresses_.push_back(address);
      sizes_.push_back(memory.size());
      if (field.kind == Field::Kind::kBuffer) by_name_[field.name] = sizes_.size() - 1;
    }
    parameters_ = addresses_;
    parameters_.resize(std::max<std::size_t>(addresses_.size(), 1));  // as module_of declares them
  }
  ~Buffers() {
    for (Address address : addresses_) gpu()->release(address);
  }
  std::span<const std::byte> parameters() const { return std::as_bytes(std::span(parameters_)); }
  std::vector<std::byte> of_field(std::size_t i) const {
    std::vector<std::byte> memory(sizes_[i]);
    EXPECT_TRUE(gpu()->download(memory, addresses_[i], nullptr).ok());
    return memory;
  }
  std::vector<std::byte> of_buffer(const std::string& name) const { return of_field(by_name_.at(name)); }

 private:
  std::vector<Address> addresses_, parameters_;
  std::vector<std::size_t> sizes_;
  std::map<std::string, std::size_t> by_name_;
};

// The device remembers images by their address, so each stays.
struct Loaded {
  std::string ptx;
  KernelImage image;
};
const KernelImage& image_of(std::string ptx) {
  static std::deque<Loaded> all;
  Loaded& loaded = all.emplace_back(Loaded{std::move(ptx), {}});
  const auto* text = reinterpret_cast<const std::byte*>(loaded.ptx.c_str());
  loaded.image = {
      "test", gpu()->arch(), loaded.ptx, {text, loaded.ptx.size() + 1}};  // the driver assembles PTX
  return loaded.image;
}

void run(const InstructionCase& test, std::string_view target, bool lanes_apart) {
  const Buffers buffers(test);
  Launch launch;
  launch.image = &image_of(module_of(test, target, lanes_apart));
  launch.entry = "test";
  launch.grid.x = launch.cluster.x = test.cluster;
  launch.block.x = test.block;
  launch.shared_bytes = test.shared_bytes;
  launch.parameters = buffers.parameters();
  Status status = gpu()->launch(launch, nullptr);
  if (status.ok()) status = gpu()->wait(nullptr);
  ASSERT_TRUE(status.ok()) << status.sentence();
  for (std::size_t i = 0; i < test.fields.size(); ++i) {
    const Field& field = test.fields[i];
    if (field.kind != Field::Kind::kOut && field.kind != Field::Kind::kAfter) continue;
    const bool out = field.kind == Field::Kind::kOut;
    const std::string wrong =
        difference(test, field, out ? buffers.of_field(i) : buffers.of_buffer(field.name));
    EXPECT_TRUE(wrong.empty()) << wrong;
  }
}

class GpuInstructionTest : public ::testing::Test {
 public:
  explicit GpuInstructionTest(fs::path path) : path_(std::move(path)) {}
  void TestBody() override {
    if (!gpu()) GTEST_SKIP() << "no CUDA device";
    const std::string target = gpu()->arch() == Arch::kSm90 ? "sm_90a" : "sm_100a";
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    const InstructionCase test = parse_case(text.str());
    if (!test.arch.empty() && test.arch != target) GTEST_SKIP() << "for " << test.arch;
    if (!test.fault.empty()) GTEST_SKIP() << "a fault would end the context";
    SCOPED_TRACE(path_.string());
    run(test, target, false);
    if (!test.converged) run(test, target, true);
  }

 private:
  fs::path path_;
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const fs::path& path :
       fs::directory_iterator(FLASHBACK_SOURCE_DIR "/tests/emulator/machine/instructions")) {
    if (path.extension() != ".ptx") continue;
    ::testing::RegisterTest("InstructionsOnGpu", path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [path]() -> ::testing::Test* { return new GpuInstructionTest(path); });
  }
  return true;
}();

}  // namespace
}  // namespace flashback::emulator::testing
