// Every refusal names the argument, its value, the rule and, where one exists, the nearest accepted value.
#include "program/arguments.h"

#include <gtest/gtest.h>

#include "program/failure.h"

namespace flashback::program {
namespace {

template <class Parse>
std::string refusal(Parse parse) {
  try {
    parse();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kUsage);
    return failure.what();
  }
  return "accepted";
}

TEST(Arguments, WholeNumbers) {
  const auto batch = [](const char* text) {
    return refusal([&] { parse_whole("--batch", text, 1, 65535); });
  };
  EXPECT_EQ(parse_whole("--batch", "1", 1, 65535), 1);
  EXPECT_EQ(parse_whole("--batch", "65535", 1, 65535), 65535);
  const std::string rule = "; it must be a whole number from 1 to 65535";
  EXPECT_EQ(batch("0"), "--batch is 0" + rule + "; nearest accepted: 1");
  EXPECT_EQ(batch("-3"), "--batch is -3" + rule + "; nearest accepted: 1");
  EXPECT_EQ(batch("65536"), "--batch is 65536" + rule + "; nearest accepted: 65535");
  EXPECT_EQ(batch("99999999999999999999"),
            "--batch is 99999999999999999999" + rule + "; nearest accepted: 65535");
  EXPECT_EQ(batch("-99999999999999999999"),
            "--batch is -99999999999999999999" + rule + "; nearest accepted: 1");
  for (const char* text : {"two", "1.5", "1x", "0x10", " 1", "1 ", "+1", "1e3"}) {
    EXPECT_EQ(batch(text), "--batch is " + std::string(text) + rule);
  }
  EXPECT_EQ(batch(""), "--batch is empty" + rule);
}

TEST(Arguments, PositiveNumbers) {
  EXPECT_EQ(parse_positive("--scale", "0.125"), 0.125);
  EXPECT_EQ(parse_positive("--scale", "1e-3"), 1e-3);
  for (const char* text : {"0", "-1", "inf", "nan", "1e999", "x", "1,5"}) {
    EXPECT_EQ(
        refusal([&] { parse_positive("--scale", text); }),
        "--scale is " + std::string(text) + "; it must be a finite number greater than 0, such as 0.125");
  }
}

}  // namespace
}  // namespace flashback::program
