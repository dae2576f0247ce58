// What a launch is refused for, and what the workbench does with memory.
#include <gtest/gtest.h>

#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

const std::string kEmpty = module_of(8, "", ".maxntid 128");

class Launches : public ::testing::Test {
 protected:
  Launches() : image_{"test", Arch::kSm100, kEmpty, {}} {
    launch_.image = &image_;
    launch_.entry = "test";
    launch_.block = {64, 1, 1};
    launch_.parameters = std::as_bytes(std::span(&parameter_, 1));
  }
  std::string sentence() { return bench_.workbench().launch(launch_, nullptr).sentence(); }
  void expect(const char* part) {
    const std::string got = sentence();
    EXPECT_NE(got.find(part), std::string::npos) << got;
  }

  PtxBench bench_;
  std::uint64_t parameter_ = 0;
  KernelImage image_;
  Launch launch_;
};

TEST_F(Launches, TheRightOneRuns) {
  EXPECT_EQ(sentence(), "");
}

TEST_F(Launches, Entry) {
  launch_.entry = "tset";
  expect("tset");
}

TEST_F(Launches, Grid) {
  launch_.grid = {1, 0, 1};
  expect("the grid of test is (1, 0, 1)");
  launch_.grid = {1, 65536, 1};
  expect("at most 65535");
}

TEST_F(Launches, Block) {
  launch_.block = {1, 1, 65};
  expect("a z extent of at most 64");
  launch_.block = {0, 1, 1};
  expect("1 to 1024 threads");
  launch_.block = {160, 1, 1};
  expect("160 threads; the entry is compiled for at most 128");
}

// 148 multiprocessors, with this much shared memory a CTA each.
TEST_F(Launches, Together) {
  launch_.shared_bytes = 200 * 1024;
  launch_.together = true;
  launch_.grid = {148, 1, 1};
  EXPECT_EQ(sentence(), "");
  launch_.grid = {149, 1, 1};
  expect("the 149 CTAs of test are to run at once; 148 multiprocessors have room for 148");
  launch_.together = false;
  EXPECT_EQ(sentence(), "");
}

TEST_F(Launches, SharedMemory) {
  launch_.shared_bytes = 232448;
  EXPECT_EQ(sentence(), "");
  launch_.shared_bytes = 232449;
  expect("a CTA has at most 232448");
}

TEST_F(Launches, Parameters) {
  launch_.parameters = launch_.parameters.first(4);
  expect("test takes 8 bytes of parameters, but 4 were given");
}

TEST_F(Launches, Architecture) {
  image_.arch = Arch::kSm90;
  expect("another architecture");
}

TEST_F(Launches, Text) {
  image_.ptx = "this is no PTX";
  EXPECT_NE(sentence(), "");
  image_.ptx = kEmpty;
  EXPECT_EQ(sentence(), "");
}

// The text is found again by where it lies, but only if it is still the same.
TEST_F(Launches, TextThatChangedInPlace) {
  std::string text = kEmpty;
  image_.ptx = text;
  EXPECT_EQ(sentence(), "");
  const std::size_t name = text.find("test");
  text.replace(name, 4, "tost");
  image_.ptx = text;
  expect("test");
  launch_.entry = "tost";
  EXPECT_EQ(sentence(), "");
}

TEST(Workbenches, NewMemoryIsNan) {
  PtxBench bench;
  Address address = 0;
  ASSERT_TRUE(bench.workbench().allocate(100, &address).ok());
  EXPECT_EQ(bench.download<std::uint8_t>(address, 100), std::vector<std::uint8_t>(100, 0xff));
}

TEST(Workbenches, CopiesStayWithinAnAllocation) {
  PtxBench bench;
  Address address = 0;
  ASSERT_TRUE(bench.workbench().allocate(100, &address).ok());
  std::vector<std::byte> bytes(101);
  EXPECT_FALSE(bench.workbench().upload(address, bytes, nullptr).ok());
  EXPECT_FALSE(bench.workbench().download(bytes, address, nullptr).ok());
  EXPECT_TRUE(bench.workbench().upload(address, std::span(bytes).first(100), nullptr).ok());
  EXPECT_FALSE(bench.workbench().fill(address, 7, 26, nullptr).ok());
  EXPECT_TRUE(bench.workbench().fill(address, 7, 25, nullptr).ok());
  EXPECT_EQ(bench.download<std::uint32_t>(address, 25), std::vector<std::uint32_t>(25, 7));
  bench.workbench().release(address);
  EXPECT_FALSE(bench.workbench().fill(address, 7, 1, nullptr).ok());
}

TEST(Workbenches, CountAndMeasure) {
  PtxBench bench;
  Executed before, after;
  ASSERT_TRUE(bench.workbench().executed(&before).ok());
  ASSERT_TRUE(bench.workbench().mark(0, nullptr).ok());
  ASSERT_TRUE(bench.run(kEmpty, std::uint64_t{0}, {64, 1, 1}, {3, 2, 1}).ok());
  ASSERT_TRUE(bench.workbench().mark(1, nullptr).ok());
  ASSERT_TRUE(bench.workbench().executed(&after).ok());
  EXPECT_EQ(after.ctas - before.ctas, 6u);
  EXPECT_GE(after.warp_instructions - before.warp_instructions, 12u);
  double milliseconds = -1;
  ASSERT_TRUE(bench.workbench().elapsed(&milliseconds).ok());
  EXPECT_GE(milliseconds, 0);
}

}  // namespace
}  // namespace flashback::emulator::testing
