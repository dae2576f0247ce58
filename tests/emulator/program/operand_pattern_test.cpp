#include "emulator/program/operand_pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace flashback::emulator {
namespace {

using Kind = OperandPattern::Kind;
using Width = OperandPattern::Width;

TEST(OperandPattern, PlacesWidthsAndDirections) {
  const auto p = parse_operand_patterns("d:r32, a:r16, +b:r64, !c:p?, l:r, i:imm, @:label");
  ASSERT_EQ(p.size(), 7u);
  EXPECT_EQ(p[0].place, 'd');
  EXPECT_EQ(p[0].width, Width::k32);
  EXPECT_TRUE(p[0].written && !p[0].read);
  EXPECT_TRUE(p[1].read && !p[1].written);
  EXPECT_TRUE(p[2].read && p[2].written);
  EXPECT_TRUE(p[3].negatable && p[3].optional);
  EXPECT_EQ(p[3].width, Width::kPredicate);
  EXPECT_EQ(p[4].place, 'l');
  EXPECT_EQ(p[4].width, Width::kAny);
  EXPECT_EQ(p[5].kind, Kind::kLiteral);
  EXPECT_EQ(p[6].kind, Kind::kLabel);
}

TEST(OperandPattern, BracketsPairsAndLists) {
  const auto p = parse_operand_patterns("[d:r32], [a:r64, list:{r32}x4], [b], d:r32|l:p?");
  ASSERT_EQ(p.size(), 4u);
  EXPECT_EQ(p[0].kind, Kind::kBrackets);
  EXPECT_TRUE(p[0].parts[0].read && !p[0].parts[0].written);  // an address, whatever its place
  ASSERT_EQ(p[1].parts.size(), 2u);
  EXPECT_EQ(p[1].parts[1].kind, Kind::kBraces);
  EXPECT_EQ(p[1].parts[1].count, 4);
  EXPECT_EQ(p[2].parts[0].width, Width::kAddress);
  EXPECT_EQ(p[3].kind, Kind::kPair);
  EXPECT_TRUE(p[3].parts[1].optional && p[3].parts[1].written && !p[3].parts[1].read);
  EXPECT_EQ(p[3].text, "d:r32|l:p?");
}

TEST(OperandPattern, OnlyTheFirstListIsWritten) {
  EXPECT_TRUE(parse_operand_patterns("list:{r32}, [a]")[0].written);
  EXPECT_FALSE(parse_operand_patterns("[a], list:{r32}")[1].written);
  const auto accumulator = parse_operand_patterns("+list:{r32}x64, a:r64");
  EXPECT_TRUE(accumulator[0].written && accumulator[0].read);
}

TEST(OperandPattern, MalformedRowsAreRefused) {
  for (const char* text :
       {"d", "d:r8", "x:r32", "[a:r32", "list:{r32", "list:{r32}x", "d:r32,", "d:r32 a:r32"}) {
    EXPECT_THROW(parse_operand_patterns(text), std::invalid_argument) << text;
  }
  EXPECT_TRUE(parse_operand_patterns("").empty());
}

}  // namespace
}  // namespace flashback::emulator
