// The generated pages are those of the present tables, texts, kernels and golden files.
#include "tests/emulator/hardware/pages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "emulator/program/instruction_set.h"
#include "tests/emulator/hardware/isa_section.h"

namespace flashback::emulator::testing {
namespace {

std::string file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(std::string(FLASHBACK_SOURCE_DIR "/") + path).rdbuf();
  return text.str();
}

constexpr const char* kRemedy = "is stale: run `build/hardware_tool pages .` in the root of the repository";

TEST(Pages, CoverageIsFresh) {
  EXPECT_TRUE(file("docs/emulator/coverage.md") == coverage_page(FLASHBACK_SOURCE_DIR))
      << "docs/emulator/coverage.md " << kRemedy;
}

TEST(Pages, HardwareIsFresh) {
  EXPECT_TRUE(file("docs/emulator/hardware.md") == hardware_page(FLASHBACK_SOURCE_DIR))
      << "docs/emulator/hardware.md " << kRemedy;
}

TEST(Pages, EveryFormHasASection) {
  for (const std::span<const Row>& family : instruction_families()) {
    for (const Row& row : family) {
      EXPECT_NE(isa_section(row.form), "") << row.form;
    }
  }
}

}  // namespace
}  // namespace flashback::emulator::testing
