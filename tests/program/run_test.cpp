// `flashback run backward` and `bench` from end to end, on the emulator.
#include <set>

#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;
using Backward = Command;

TEST_F(Backward, TextTellsErrorsAndLimits) {
  const Outcome outcome = run("run backward");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.rfind(
                "backward  batch 1, heads 1, kv heads 1, seqlen 128 x 128, head dim 64, bf16, dense, scale "
                "0.125\nvalues    data normal, seed 0\ndevice    emulator, sm100: every number below is "
                "emulated\n",
                0),
            0u)
      << outcome.out;
  for (const char* gradient : {"  dq  ", "  dk  ", "  dv  "}) {
    const std::size_t line = outcome.out.find(gradient);
    ASSERT_NE(line, std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.substr(outcome.out.find('\n', line) - 3, 3), "yes");
  }
}

TEST_F(Backward, JsonHasTheAgreedKeys) {
  const Outcome outcome = run("run backward --seqlen-q 130 --seqlen-k 70 --causal --heads 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["arch"], "sm100");
  EXPECT_EQ(report["device"], "emulator");
  EXPECT_EQ(report["word"], "emulated");
  EXPECT_EQ(report["entries"], Json({"preprocess_sm100_d64_bf16", "backward_sm100_d64_bf16_causal_split_warp",
                                     "postprocess_sm100_d64_bf16"}));
  EXPECT_EQ(report["shape"], Json({{"batch", 1},
                                   {"heads", 2},
                                   {"kv_heads", 2},
                                   {"seqlen_q", 130},
                                   {"seqlen_k", 70},
                                   {"head_dim", 64}}));
  for (const char* gradient : {"dq", "dk", "dv"}) {
    const Json& verdict = report[gradient];
    EXPECT_TRUE(verdict["ok"]);
    EXPECT_GT(verdict["max_abs"], 0);
    EXPECT_LE(verdict["max_abs"], verdict["limit"]);
    EXPECT_GT(verdict["rel"], 0);
    EXPECT_LT(verdict["rel"], 0.02);
  }
  EXPECT_TRUE(report["ok"]);
  EXPECT_GT(report["seconds"], 0);
  EXPECT_FALSE(report.contains("variants"));
}

TEST_F(Backward, TheWholeProblemHasItsOptions) {
  const Outcome outcome =
      run("run backward --cu-seqlens-q 0,100,100,260 --cu-seqlens-k 0,70,90,330 --seqused-k 70,20,201 "
          "--heads 4 --kv-heads 2 --head-dim 40 --dtype fp16 --window 64,10 --sink --dlse --deterministic "
          "--seed 5 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_TRUE(report["ok"]);
  EXPECT_TRUE(report["packed"]);
  EXPECT_EQ(report["window"], Json({64, 10}));
  EXPECT_TRUE(report["dsink"]["ok"]);
  EXPECT_EQ(report["shape"], Json({{"batch", 3},
                                   {"heads", 4},
                                   {"kv_heads", 2},
                                   {"seqlen_q", 260},
                                   {"seqlen_k", 330},
                                   {"head_dim", 40}}));
  EXPECT_EQ(report["entries"][0], "schedule_sm100");
  EXPECT_EQ(report["entries"][3], "backward_sm100_d64_fp16_window_split_warp");
  EXPECT_EQ(run("run backward --batch 2 --seqlen-q 30 --seqused-q 30,5 --causal").code, 0);
  EXPECT_EQ(run("run backward --seqlen-k 0").code, 0);
  EXPECT_EQ(run("run backward --batch 0").code, 0);
}

TEST_F(Backward, VariantsAreComparedBitForBit) {
  const std::string variants = "--variants aliased/cta,aliased/warp,split/cta,split/warp";
  const Outcome outcome = run("run backward --seqlen-q 300 " + variants + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  ASSERT_EQ(report["variants"].size(), 4u);
  std::set<std::string> entries;
  for (const Json& variant : report["variants"]) {
    EXPECT_TRUE(variant["ok"]);
    entries.insert(variant["entries"][1].get<std::string>());
  }
  EXPECT_EQ(entries.size(), 4u);
  EXPECT_EQ(report["identical"], Json({{"dq", true}, {"dk", true}, {"dv", true}}));
  const Outcome text = run("run backward " + variants);
  EXPECT_NE(text.out.find("\ndq, dk, dv of the variants agree bit for bit in the emulator's fixed order.\n"),
            std::string::npos)
      << text.out;
}

TEST_F(Backward, HopperRunsGroupsOfHeads) {
  const std::string arguments =
      "run backward --arch sm90 --heads 6 --kv-heads 2 --seqlen-q 200 --seqlen-k 260 --causal";
  const Outcome outcome = run(arguments + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["arch"], "sm90");
  // Two key heads give few items, so that groups are divided and their dK and dV summed: three postprocesses.
  EXPECT_EQ(report["entries"],
            Json({"preprocess_sm90_d64_bf16", "backward_sm90_d64_bf16_causal", "postprocess_sm90_d64_bf16",
                  "postprocess_sm90_d64_bf16", "postprocess_sm90_d64_bf16"}));
  EXPECT_TRUE(report["ok"]);
  EXPECT_FALSE(report.contains("tmem"));
  const Outcome text = run(arguments);
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.out.find("split/warp"), std::string::npos) << text.out;
}

// What changes the values changes the errors; what does not change them, does not.
TEST_F(Backward, SeedsAndDataMatterThreadsDoNot) {
  const auto errors = [&](const std::string& options) {
    const Outcome outcome = run("run backward --seqlen-q 200 --heads 2 --json " + options);
    EXPECT_EQ(outcome.code, 0) << options << outcome.err;
    const Json report = Json::parse(outcome.out);
    return std::vector<double>{report["dq"]["max_abs"], report["dk"]["max_abs"], report["dv"]["max_abs"]};
  };
  EXPECT_EQ(errors("--threads 1"), errors("--threads 2"));
  EXPECT_NE(errors("--seed 0"), errors("--seed 1"));
  EXPECT_NE(errors("--data normal"), errors("--data heavy"));
  EXPECT_EQ(errors("--data zero"), std::vector<double>(3, 0.0));
}

TEST_F(Backward, NoGpuIsOneSentence) {
  const Outcome outcome = run("run backward --device cuda:999");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(Backward, BenchTellsTheEmulatorsSpeed) {
  const Outcome outcome = run("bench --suite emulator --runs 1 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["suite"], "emulator");
  EXPECT_EQ(report["threads"], 1);
  EXPECT_GT(report["tiles_per_s_core"], 1);
  // A tile takes sixteen warps some thousand instructions.
  EXPECT_GT(report["warp_instructions_per_s_core"].get<double>() / report["tiles_per_s_core"].get<double>(),
            1000);
  EXPECT_GT(report["checked_ratio"], 1);
  EXPECT_LT(report["peak_bytes"], std::int64_t{4} << 30);
}

}  // namespace
}  // namespace flashback::program
