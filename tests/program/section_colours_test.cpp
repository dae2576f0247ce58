// Every section of the kernels that `flashback trace` draws has a colour, and no two of one kernel the same.
#include "program/section_colours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "attention/kernel_table.h"
#include "tests/device/image_text.h"

namespace flashback::program {
namespace {

TEST(SectionColours, EachSectionOfABackwardKernelHasOneOfItsOwn) {
  int kernels = 0;
  for (const Kernel& kernel : kernel_table()) {
    if (kernel.direction != Direction::kBackward) continue;
    ++kernels;
    const std::string text = testing::text_of(*kernel.main.image);
    const std::size_t begin = text.find(".entry " + kernel.main.name + "("),
                      end = text.find(".entry ", begin + 1);
    ASSERT_NE(begin, std::string::npos);
    std::map<std::string_view, std::string> section_of;  // a colour
    int sections = 0;
    constexpr std::string_view kMark = "//@ ";
    for (std::size_t at = begin; (at = text.find(kMark, at)) < end;) {
      at += kMark.size();
      std::string section = text.substr(at, text.find('\n', at) - at);
      section.erase(section.find_last_not_of(" \t") + 1);
      const auto found = std::find_if(std::begin(kSectionColours), std::end(kSectionColours),
                                      [&](const auto& colour) { return colour.section == section; });
      ASSERT_NE(found, std::end(kSectionColours)) << kernel.main.name << ": " << section;
      const auto [first, fresh] = section_of.try_emplace(found->value, section);
      EXPECT_EQ(first->second, section) << kernel.main.name << ": both are " << found->value;
      sections += fresh;
    }
    EXPECT_GE(sections, 6) << kernel.main.name;
  }
  EXPECT_GT(kernels, 10);
}

}  // namespace
}  // namespace flashback::program
