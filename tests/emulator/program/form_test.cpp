#include "emulator/program/form.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace flashback::emulator {
namespace {

using Choices = std::vector<std::string_view>;

bool matches(std::string_view form, std::string_view opcode, Choices* choices) {
  return Form(form).match(opcode, choices);
}

TEST(Form, OptionalPieces) {
  Choices choices;
  EXPECT_TRUE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rn.f32", &choices));
  EXPECT_TRUE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rn.ftz.f32", &choices));
  EXPECT_TRUE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rn.ftz.sat.f32", &choices));
  EXPECT_FALSE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rn.sat.ftz.f32", &choices));
  EXPECT_FALSE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rn.f32x2", &choices));
  EXPECT_FALSE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rn", &choices));
  EXPECT_FALSE(matches("fma.rn{.ftz}{.sat}.f32", "fma.rni.f32", &choices));
}

TEST(Form, ChoicesSayWhatTheyTook) {
  Choices choices;
  EXPECT_TRUE(matches("cvt{.rn|.rz}{.ftz}(.f32|.f64)(.s32|.f32)", "cvt.rz.f32.s32", &choices));
  EXPECT_EQ(choices, (Choices{"rz", "f32", "s32"}));
  EXPECT_TRUE(matches("cvt{.rn|.rz}{.ftz}(.f32|.f64)(.s32|.f32)", "cvt.ftz.f64.f32", &choices));
  EXPECT_EQ(choices, (Choices{"", "f64", "f32"}));
  EXPECT_FALSE(matches("cvt{.rn|.rz}{.ftz}(.f32|.f64)(.s32|.f32)", "cvt.rm.f32.s32", &choices));
}

// The first `{.global}` must stay out for the second to match: the matcher goes back.
TEST(Form, GoesBackOverAnOptionalPiece) {
  Choices choices;
  EXPECT_TRUE(matches("ld{.global|.volatile}{.global}.u32", "ld.global.u32", &choices));
  EXPECT_TRUE(matches("x{.a|.b}(.a|.c)", "x.a", &choices));
  EXPECT_EQ(choices, (Choices{"", "a"}));
}

TEST(Form, DoubleColonsGlue) {
  Choices choices;
  EXPECT_TRUE(matches("tcgen05.wait(::ld|::st).sync.aligned", "tcgen05.wait::st.sync.aligned", &choices));
  EXPECT_EQ(choices, (Choices{"st"}));
  EXPECT_TRUE(matches("a.b{.mbarrier::arrive::one}.c", "a.b.mbarrier::arrive::one.c", &choices));
  EXPECT_FALSE(matches("a.b{.mbarrier::arrive}.c", "a.b.mbarrier::arrive::one.c", &choices));
  EXPECT_EQ(Form("tcgen05.wait(::ld|::st)").first_piece(), "tcgen05");
}

TEST(Form, MalformedRowsAreRefused) {
  EXPECT_THROW(Form("a.b{.c"), std::invalid_argument);
  EXPECT_THROW(Form("{.a}b"), std::invalid_argument);
  EXPECT_THROW(Form(""), std::invalid_argument);
}

}  // namespace
}  // namespace flashback::emulator
