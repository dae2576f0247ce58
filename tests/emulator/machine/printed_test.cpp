// What programs print with vprintf: formatted as C does it, CTA by CTA in start order, also when the launch
// fails.
#include <gtest/gtest.h>

#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

std::string bytes_of(std::string_view text) {
  std::string list;
  for (const char c : text) list += fmt::format("{}, ", static_cast<int>(c));
  return list + "0";
}

// A module whose entry prints `format` with 32 bytes of arguments that `stores` writes to [list].
std::string printing(std::string_view format, const std::string& stores, const std::string& after = "") {
  return fmt::format(
      ".version 8.8\n.target sm_100a\n.address_size 64\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".global .align 1 .b8 format[{}] = {{{}}};\n.global .align 1 .b8 word[5] = {{{}}};\n"
      ".visible .entry test(.param .u64 p)\n{{\n.reg .b64 %a, %word;\n.reg .b32 %r<4>;\n.reg .pred %q;\n"
      ".local .align 8 .b8 list[32];\nmov.u64 %word, word;\n{}\nmov.u64 %a, format;\n"
      "{{ .param .b64 p0; .param .b64 p1; .param .b32 r0;\nst.param.b64 [p0], %a;\nmov.u64 %a, list;\n"
      "st.param.b64 [p1], %a;\ncall.uni (r0), vprintf, (p0, p1); }}\n{}\nret;\n}}\n",
      format.size() + 1, bytes_of(format), bytes_of("word"), stores, after);
}

class Printing : public ::testing::Test {
 protected:
  std::string run(const std::string& ptx, std::uint32_t threads, std::uint32_t ctas) {
    std::string text;
    MachineOptions options;
    options.threads = 2;
    options.print = [&](std::string_view more) { text += more; };
    status_ = PtxBench(options).run(ptx, std::uint64_t{0}, {threads, 1, 1}, {ctas, 1, 1});
    return text;
  }
  Status status_;
};

TEST_F(Printing, Conversions) {
  const std::string stores =
      "st.local.u32 [list], -5;\nst.local.f64 [list+8], 0d3FF8000000000000;\nst.local.u64 [list+16], %word;\n"
      "st.local.u64 [list+24], 0x123456789a;\n";
  EXPECT_EQ(run(printing("%d|%6.2f|%-6s|%llx|100%%\n", stores), 1, 1), "-5|  1.50|word  |123456789a|100%\n");
  EXPECT_TRUE(status_.ok()) << status_.sentence();
}

TEST_F(Printing, WidthFromAnArgument) {
  EXPECT_EQ(run(printing("%*d", "st.local.u32 [list], 4;\nst.local.u32 [list+4], 7;"), 1, 1), "   7");
}

TEST_F(Printing, LanesAndCtasInOrder) {
  const std::string stores =
      "mov.u32 %r1, %ctaid.x;\nst.local.u32 [list], %r1;\nmov.u32 %r1, %tid.x;\nst.local.u32 [list+4], "
      "%r1;\n";
  std::string expected;
  for (int cta = 0; cta < 9; ++cta) {
    for (int lane = 0; lane < 3; ++lane) expected += fmt::format("{}.{} ", cta, lane);
  }
  EXPECT_EQ(run(printing("%d.%d ", stores), 3, 9), expected);
}

TEST_F(Printing, BeforeAFault) {
  EXPECT_EQ(run(printing("last words", "", "trap;"), 1, 1), "last words");
  EXPECT_NE(status_.sentence().find("trapped"), std::string::npos);
}

}  // namespace
}  // namespace flashback::emulator::testing
