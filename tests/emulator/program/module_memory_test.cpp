// Variables of a module: found by name and by address, apart from each other; what cannot be linked is
// refused.
#include "emulator/program/module_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "emulator/ptx/parser.h"

namespace flashback::emulator {
namespace {

class Loaded {
 public:
  explicit Loaded(const std::string& variables)
      : parsed_(ptx::parse(".version 8.8\n.target sm_100a\n.address_size 64\n" + variables)),
        memory(*parsed_.module, &error) {}

 private:
  ptx::ParseResult parsed_;

 public:
  std::string error;
  ModuleMemory memory;
};

template <class T>
T at(std::span<std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

TEST(ModuleMemory, InitialValuesThenZeros) {
  const Loaded loaded(".global .align 16 .b32 words[4] = {1, -2};\n.const .f64 third = 0d3FD5555555555555;");
  const std::span<std::byte> words = loaded.memory.find("words");
  ASSERT_EQ(words.size(), 16u);
  EXPECT_EQ(at<std::uint32_t>(words, 0), 1u);
  EXPECT_EQ(at<std::uint32_t>(words, 1), 0xfffffffeu);
  EXPECT_EQ(at<std::uint32_t>(words, 3), 0u);
  EXPECT_EQ(at<double>(loaded.memory.find("third"), 0), 1.0 / 3);
}

TEST(ModuleMemory, FoundByNameAndByAddress) {
  const Loaded loaded(".global .b8 one[3];\n.global .b8 two[5];\n.shared .b8 three[8];");
  const std::uint64_t two = loaded.memory.address("two");
  EXPECT_EQ(loaded.memory.holder(two + 4).data(), loaded.memory.find("two").data());
  EXPECT_TRUE(loaded.memory.holder(two + 5).empty());
  EXPECT_TRUE(loaded.memory.holder(loaded.memory.address("one") + 3).empty());
  EXPECT_TRUE(loaded.memory.holder(0).empty());
  EXPECT_TRUE(loaded.memory.find("three").empty());
  EXPECT_TRUE(loaded.memory.find("four").empty());
}

TEST(ModuleMemory, StrictAlignment) {
  const Loaded loaded(".global .b8 small[1];\n.global .align 512 .b8 map[128];");
  EXPECT_EQ(loaded.memory.address("map") % 512, 0u);
}

TEST(ModuleMemory, AddressesOfLaterVariables) {
  const Loaded loaded(".global .u64 pointers[2] = {last, generic(last)+2};\n.global .b32 last = 5;");
  EXPECT_EQ(loaded.error, "");
  const std::span<std::byte> pointers = loaded.memory.find("pointers");
  EXPECT_EQ(at<std::uint64_t>(pointers, 0), loaded.memory.address("last"));
  EXPECT_EQ(at<std::uint64_t>(pointers, 1), loaded.memory.address("last") + 2);
}

TEST(ModuleMemory, AddressesOfWhatIsNotInIt) {
  const Loaded loaded(".shared .b32 there;\n.global .u64 pointer = there;");
  EXPECT_NE(loaded.error.find("PTX line 5: the initial value of `pointer` is the address of `there`"),
            std::string::npos)
      << loaded.error;
}

}  // namespace
}  // namespace flashback::emulator
