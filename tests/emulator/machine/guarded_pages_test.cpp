#include "emulator/machine/guarded_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace flashback::emulator {
namespace {

class GuardedPages : public ::testing::TestWithParam<std::size_t> {};  // bytes

INSTANTIATE_TEST_SUITE_P(Sizes, GuardedPages, ::testing::Values(1, 4096, 5000, (16 << 20) + 1, 50 << 20));

TEST_P(GuardedPages, BeginAsNaN) {
  const std::size_t bytes = GetParam();
  std::byte* memory = map_guarded_pages(bytes);
  ASSERT_NE(memory, nullptr);
  for (std::size_t at = 0; at < bytes; at += 1000) ASSERT_EQ(memory[at], std::byte{0xff}) << at;
  EXPECT_EQ(memory[bytes - 1], std::byte{0xff});
  unmap_guarded_pages(memory, bytes);
}

TEST_P(GuardedPages, HoldWhatIsWrittenAndNothingElse) {
  const std::size_t bytes = GetParam(), step = 1 << 20;
  std::byte *memory = map_guarded_pages(bytes), *other = map_guarded_pages(bytes);
  for (std::size_t at = 0; at < bytes; at += step) memory[at] = std::byte(at / step);
  for (std::size_t at = 0; at < bytes; at += step) {
    EXPECT_EQ(memory[at], std::byte(at / step));
    EXPECT_EQ(other[at], std::byte{0xff});
  }
  unmap_guarded_pages(memory, bytes);
  unmap_guarded_pages(other, bytes);
}

TEST_P(GuardedPages, CannotBeLeft) {
  volatile std::byte* memory = map_guarded_pages(GetParam());
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t end = (GetParam() + page - 1) / page * page;
  EXPECT_DEATH(*(memory - 1) = std::byte{0}, "");
  EXPECT_DEATH(memory[end] = std::byte{0}, "");
}

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A program may allocate most of a GPU's memory and use little of it.
TEST(LargeGuardedPages, CostMemoryOnlyWhereTheyAreWritten) {
  constexpr std::size_t kBytes = std::size_t{100} << 30;
  const std::size_t before = resident_bytes();
  std::byte* memory = map_guarded_pages(kBytes);
  ASSERT_NE(memory, nullptr);
  memory[kBytes - 1] = std::byte{1};
  EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
  unmap_guarded_pages(memory, kBytes);
}

TEST(LargeGuardedPages, AreRefusedBeyondTheAddressSpace) {
  EXPECT_EQ(map_guarded_pages(SIZE_MAX), nullptr);
  EXPECT_EQ(map_guarded_pages(std::size_t{1} << 50), nullptr);
}

}  // namespace
}  // namespace flashback::emulator
