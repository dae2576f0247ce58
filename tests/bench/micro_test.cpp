// The probes run; what they measure needs a GPU.
#include "bench/micro/micro.h"

#include <gtest/gtest.h>

#include "attention/kernel_table.h"
#include "bench/micro/clocked.h"
#include "device/ptx_text.h"
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
  EXPECT_EQ(measured.size(), GetParam() == Arch::kSm100 ? 22u : 15u);
}
INSTANTIATE_TEST_SUITE_P(, Probes, ::testing::Values(Arch::kSm90, Arch::kSm100),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(Clocks, AreReadAtTheBeginAndBeforeEachReturnOfTheEntry) {
  const KernelImage& image = *find_image("sm90_backward");
  std::string plain;
  ASSERT_TRUE(ptx_text(image.ptx, &plain).ok());
  const std::string text = with_clocks(plain, "backward_sm90_d64_bf16_dense", 64);
  const auto count = [](std::string_view in, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = in.find(what, at)) != std::string_view::npos; ++at) ++n;
    return n;
  };
  const std::size_t begin = text.find(".entry backward_sm90_d64_bf16_dense(");
  const std::string_view entry =
      std::string_view(text).substr(begin, text.find(".entry ", begin + 1) - begin);
  EXPECT_GE(count(entry, "ret;"), 1u);
  EXPECT_EQ(count(entry, "%clock64"), 1 + count(entry, "ret;"));
  EXPECT_EQ(count(text, "%clock64"), count(entry, "%clock64")) << "other entries are left alone";
  EXPECT_LT(entry.find("%clock64"), entry.find("bar.sync"));
  EXPECT_EQ(with_clocks(plain, "no_such_entry", 64), "");
}

}  // namespace
}  // namespace flashback::micro
