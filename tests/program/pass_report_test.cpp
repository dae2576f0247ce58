// The JSON that is kept, and the table.
#include "program/pass_report.h"

#include <gtest/gtest.h>

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

bench::ContenderResult contender(const std::string& name, double ms) {
  bench::Timing timing;
  timing.rounds = {{ms, ms + 1, ms + 1}, {ms + 1, ms + 3}};
  timing.readings = {{690, 1500, 3201, 65, 4}};
  return {name, {}, {timing}};
}

PassReport report() {
  const bench::Cell cell = {Mask::kCausal, {16, 32, 8, 4096, 4096, 64}};
  return {"backward",
          {"NVIDIA H200", "580.1", "2026-11-29T19:00:00Z", "abc", "flashback bench"},
          700.0,
          {bench::kShort},
          {{cell, {contender("flashback", 4), contender("fa3", 5)}}}};
}

TEST(PassReport, JsonHasWhatAComparisonNeeds) {
  const Json json = to_json(report());
  EXPECT_EQ(json["suite"], "backward");
  EXPECT_EQ(json["card"], "NVIDIA H200");
  EXPECT_EQ(json["power_limit_watts"], 700);
  EXPECT_EQ(json["protocols"][0]["name"], "short");
  EXPECT_TRUE(json["ok"]);
  const Json& cell = json["cells"][0];
  EXPECT_EQ(cell["name"], "causal gqa 4096");
  const Json& timing = cell["contenders"][1]["timings"][0];
  EXPECT_EQ(timing["protocol"], "short");
  EXPECT_EQ(timing["ms"], 6);
  EXPECT_EQ(timing["ms_of_rounds"], Json({6, 7}));
  EXPECT_EQ(timing["ms_least"], 5);
  EXPECT_EQ(timing["ms_most"], 8);
  EXPECT_EQ(timing["calls"], 5);
  // 5 * 16 * 32 * 4096^2 * 64 operations in 6 ms
  EXPECT_NEAR(timing["tflops"].get<double>(), 5.0 * 16 * 32 * 4096 * 4096 * 64 / 6e-3 * 1e-12, 1e-9);
  EXPECT_EQ(timing["gpu"]["clock_reasons"], "0x4");
}

TEST(PassReport, TextHasTheRatios) {
  const std::string text = to_text(report());
  EXPECT_NE(text.find("causal gqa 4096"), std::string::npos) << text;
  EXPECT_NE(text.find(" 1.200\n"), std::string::npos) << text;
  EXPECT_NE(text.find("fa3 / flashback: geometric mean 1.200, least 1.200 (causal gqa 4096)"),
            std::string::npos)
      << text;
}

TEST(PassReport, WhatIsWrongIsNotTimed) {
  PassReport wrong = report();
  wrong.cells[0].contenders[1].check.wrong = "dq lies far away";
  for (bench::ContenderResult& contender : wrong.cells[0].contenders) contender.timings.clear();
  EXPECT_FALSE(wrong.ok());
  const Json json = to_json(wrong);
  EXPECT_FALSE(json["ok"]);
  EXPECT_EQ(json["cells"][0]["contenders"][1]["check"]["sentence"], "dq lies far away");
  EXPECT_FALSE(json["cells"][0]["contenders"][0].contains("timings"));
  EXPECT_NE(to_text(wrong).find("wrong: causal gqa 4096: fa3: dq lies far away"), std::string::npos);
}

}  // namespace
}  // namespace flashback::program
