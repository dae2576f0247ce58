// What the command says of itself, and how it refuses what nobody can run. Needs neither the emulator nor a
// GPU.
#include <fmt/format.h>

#include <algorithm>

#include "program/tensor_memory_map.h"
#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;
using Usage = Command;

TEST_F(Usage, HelpAndVersionAreRight) {
  EXPECT_EQ(run("--version").out, "flashback 0.1\n");
  for (const char* command : {"", "run", "run backward", "plan", "plan backward", "list", "trace",
                              "trace backward", "bench", "check"}) {
    const Outcome help = run(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_EQ(help.err, "") << command;
    EXPECT_NE(help.out.find("Examples:\n  flashback "), std::string::npos) << command;
  }
}

TEST_F(Usage, SubcommandsAreNamed) {
  expect_refused(
      "",
      "flashback stands alone; it must be followed by one of run, plan, list, trace, bench, emulate, check");
  expect_refused("fly",
                 "flashback is followed by fly; it must be followed by one of run, plan, list, trace, bench, "
                 "emulate, check");
  expect_refused("run", "flashback run stands alone; it must be followed by one of backward, forward");
  expect_refused("run sideways",
                 "flashback run is followed by sideways; it must be followed by one of backward, forward");
  expect_refused("list x",
                 "The following argument was not expected: x; flashback list --help tells what is accepted");
  expect_refused("run backward --fast",
                 "The following argument was not expected: --fast; flashback run backward --help tells what "
                 "is accepted");
  expect_refused("run backward --batch",
                 "--batch: 1 required N missing; flashback run backward --help tells what is accepted");
}

TEST_F(Usage, ValuesAreChecked) {
  const auto extents = [&](int least, std::initializer_list<const char*> options) {
    const std::string rule = fmt::format("; it must be a whole number from {} to 2147483647", least);
    for (const std::string option : options) {
      for (const std::string command : {"run backward ", "plan backward "}) {
        expect_refused(fmt::format("{} {} {}", command, option, least - 1),
                       fmt::format("{} is {}{}; nearest accepted: {}", option, least - 1, rule, least));
        expect_refused(command + option + " 1e3", option + " is 1e3" + rule);
      }
    }
  };
  extents(1, {"--heads", "--kv-heads", "--head-dim"});
  extents(0, {"--batch", "--seqlen-q", "--seqlen-k"});
  expect_refused(
      "run backward --batch 99999999999999999999",
      "--batch is 99999999999999999999; it must be a whole number from 0 to 2147483647; nearest accepted: "
      "2147483647");
  expect_refused(
      "run backward --seed -1",
      "--seed is -1; it must be a whole number from 0 to 9223372036854775807; nearest accepted: 0");
  expect_refused("run backward --threads 0",
                 "--threads is 0; it must be a whole number from 1 to 1024; nearest accepted: 1");
  expect_refused("run backward --scale nan",
                 "--scale is nan; it must be a finite number greater than 0, such as 0.125");
  expect_refused("run backward --scale 1e-300",
                 "--scale is 1e-300; it must be a normal number of fp32, from 1.2e-38 to 3.4e38");
  expect_refused("run backward --dtype fp8", "--dtype is fp8; it must be one of bf16, fp16");
  expect_refused("run backward --data odd",
                 "--data is odd; it must be one of normal, low, high, equal, zero, heavy");
  expect_refused("run backward --tmem both", "--tmem is both; it must be one of aliased, split");
  expect_refused("run backward --signal ''", "--signal is empty; it must be one of cta, warp");
  expect_refused("run backward --arch sm80", "--arch is sm80; it must be one of sm100, sm90");
  expect_refused("run backward --device gpu",
                 "--device is gpu; it must be one of emulator, cuda:N with a device number N");
  expect_refused(
      "run backward --device cuda:-1",
      "the number in --device cuda:N is -1; it must be a whole number from 0 to 1023; nearest accepted: 0");
  expect_refused("bench --suite all",
                 "--suite is all; it must be one of emulator, ablation, headline, sweep, sensitivity, micro, "
                 "backward, forward, host");
  expect_refused("bench --suite ablation --arch sm90",
                 "--suite is ablation and --arch is sm90, whose kernel has no variants: an ablation compares "
                 "variants; sm100 is accepted");
  expect_refused(
      "bench --suite ablation --device cuda:0",
      "--device is cuda:0; the suite ablation is predicted on the emulator, and emulator is accepted");
  expect_refused("bench --suite micro",
                 "--device is emulator; the suite micro measures a GPU, and cuda:N is accepted");
  expect_refused("trace backward --out tile.png",
                 "--out is tile.png; it must end in .svg, .json or .txt, which says what is written");
  expect_refused(
      "trace backward --head-dim 136 --out tile.svg",
      "head_dim is 136; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128");
  const std::string cuda =
      "; the suite backward takes times of a GPU, so it must be cuda:N with a device number N";
  expect_refused("bench --suite backward", "--device is emulator" + cuda);
  expect_refused("bench --suite backward --device cuda:0 --protocol long",
                 "--protocol is long; it must be one of short, sustained, both");
  expect_refused("bench --suite forward --device cuda:0 --cells deterministic",
                 "--cells has the word \"deterministic\"; the suite forward has no such order, for its bits "
                 "never vary, and \"default\" is accepted");
  expect_refused("bench --suite backward --device cuda:0 --cells mha,3k",
                 "--cells has the word \"3k\"; each must be one of these: head dimension d64, d128; layout "
                 "padded, packed; "
                 "dtype bf16, fp16; order default, deterministic; heads mha, gqa, mqa; mask dense, causal, "
                 "window; length 128, "
                 "256, 512, 1k, 2k, 4k, 8k, 16k, 32k");
  expect_refused("bench --runs 0",
                 "--runs is 0; it must be a whole number from 1 to 1000; nearest accepted: 1");
}

TEST_F(Usage, VariantsAreChecked) {
  expect_refused("plan backward --variants split",
                 "--variants has the item \"split\"; each must be TMEM/SIGNAL, such as split/warp");
  expect_refused("plan backward --variants split/warp,",
                 "--variants has the item \"\"; each must be TMEM/SIGNAL, such as split/warp");
  expect_refused("plan backward --variants warp/split",
                 "the part before / of --variants is warp; it must be one of aliased, split");
  expect_refused(
      "plan backward --variants split/warp --tmem split",
      "--variants is split/warp and --tmem is given too; each variant names its own, so leave one of the two "
      "out");
  expect_refused(
      "run backward --variants aliased/cta,split/warp --output x",
      "--output is x and --variants names 2; gradients of one variant can be written, so name one");
}

TEST_F(Usage, UnsupportedProblemsAreRefused) {
  expect_refused(
      "plan backward --head-dim 136",
      "head_dim is 136; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128");
  expect_refused(
      "plan backward --arch sm90 --head-dim 136",
      "head_dim is 136; no backward kernel for sm90 takes it yet; accepted: multiples of 8 up to 128");
  expect_refused("plan backward --heads 4 --kv-heads 3",
                 "kv_heads is 3; it must divide heads, which is 4; nearest accepted: 4");
}

TEST_F(Usage, SequencesAreChecked) {
  const auto refused = [&](const std::string& options, const std::string& sentence) {
    expect_refused("plan backward " + options, sentence);
  };
  refused("--window 5", "--window is 5; it must be LEFT,RIGHT, such as 1024,0");
  refused("--window=-2,0",
          "LEFT of --window is -2; it must be a whole number from -1 to 2147483647; nearest accepted: -1");
  refused(
      "--cu-seqlens-q 0,5 --seqlen-q 5",
      "--seqlen-q is 5 and --cu-seqlens-q is 0,5, which tells the rows of each sequence; leave --seqlen-q "
      "out");
  refused("--cu-seqlens-k 0,5 --batch 1",
          "--batch is 1 and --cu-seqlens-k is 0,5, which tells the rows of each sequence; leave --batch out");
  refused("--cu-seqlens-q 0,x",
          "the item \"x\" of --cu-seqlens-q is x; it must be a whole number from 0 to 2147483647");
  refused("--cu-seqlens-q 1,5", "--cu-seqlens-q starts with 1; its first number must be 0");
  refused("--cu-seqlens-q 0,5,4", "--cu-seqlens-q has 4 after 5; its numbers must not descend");
  refused("--cu-seqlens-q 0,5 --cu-seqlens-k 0,5,6",
          "--cu-seqlens-q has 2 numbers; it must have 3, one more than there are sequences");
  refused("--batch 2 --seqused-q 5", "--seqused-q has 1 numbers; it must have 2, one of each sequence");
  refused("--cu-seqlens-k 0,5 --seqused-k 6", "--seqused-k gives sequence 0 6 rows; it has 5");
  expect_refused("run backward --input x --sink",
                 "lengths of sequences, --sink and --dlse come from --input x; leave one of the two out");
}

TEST_F(Usage, HopperHasNoVariants) {
  for (const char* command : {"run", "plan"}) {
    expect_refused(
        std::string(command) + " backward --arch sm90 --tmem aliased",
        "tensor_memory is aliased; the kernel for sm90 has no variants; accepted: split, the default");
    expect_refused(std::string(command) + " backward --arch sm90 --signal cta",
                   "signal is cta; the kernel for sm90 has no variants; accepted: warp, the default");
    expect_refused(
        std::string(command) + " backward --arch sm90 --variants split/warp,aliased/warp",
        "tensor_memory is aliased; the kernel for sm90 has no variants; accepted: split, the default");
  }
  expect_refused("run backward --arch sm90 --heads 4 --kv-heads 3",
                 "kv_heads is 3; it must divide heads, which is 4; nearest accepted: 4");
}

TEST_F(Usage, ListIsTheTable) {
  const Outcome json = run("list --json");
  ASSERT_EQ(json.code, 0);
  const Json kernels = Json::parse(json.out)["kernels"];
  const Outcome text = run("list");
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), std::ptrdiff_t(kernels.size()) + 1);
  int variants = 0, hopper = 0;
  for (const Json& kernel : kernels) {
    const bool forward = kernel["direction"] == "forward";
    EXPECT_EQ(kernel["entries"].size(), forward ? 3u : 5u);
    EXPECT_TRUE(kernel["entries"].contains(forward ? "unseen" : "postprocess"));
    EXPECT_NE(text.out.find(kernel["entries"]["main"].get<std::string>() + "\n"), std::string::npos);
    // Forward kernels have no variants, Hopper no tensor memory, and at head dim 128 only one map fits.
    const bool has_variants = !forward && kernel["arch"] == "sm100" && kernel["head_dim"] == 64;
    EXPECT_EQ(kernel.contains("tmem"), has_variants);
    variants += has_variants && kernel["dtype"] == "bf16";
    hopper += kernel["arch"] == "sm90" && kernel["head_dim"] == 64 && kernel["dtype"] == "bf16";
  }
  EXPECT_EQ(variants, 12);  // three masks, four variants
  EXPECT_EQ(hopper, 6);     // three masks, two passes
}

TEST_F(Usage, PlanShowsLaunchesAndWorkspace) {
  const Outcome outcome =
      run("plan backward --batch 2 --heads 3 --seqlen-q 200 --seqlen-k 300 --causal --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  ASSERT_EQ(plan["launches"].size(), 3u);
  const Json& main = plan["launches"][1];
  EXPECT_EQ(main["step"], "main");
  EXPECT_EQ(main["entry"], "backward_sm100_d64_bf16_causal_split_warp");
  EXPECT_EQ(main["grid"], Json({6, 3, 1}));  // 300 keys are three tiles of 128
  EXPECT_EQ(main["block"], Json({512, 1, 1}));
  EXPECT_EQ(main["cluster"], Json({1, 1, 1}));
  EXPECT_GT(main["shared_bytes"], 100'000);
  // 200 query rows are padded to 256: lse and delta 6 KiB each, dq fp32.
  ASSERT_EQ(plan["workspace"]["parts"].size(), 3u);
  EXPECT_EQ(plan["workspace"]["parts"][0]["bytes"], 2 * 3 * 256 * 4);
  EXPECT_EQ(plan["workspace"]["parts"][2]["bytes"], 2 * 3 * 256 * 64 * 4);
  const Outcome text = run("plan backward --heads 3");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("grid 1 x 3 x 1, cluster 1 x 1 x 1, block 512 x 1 x 1"), std::string::npos);
}

TEST_F(Usage, PlanForHopper) {
  const std::string shape = "plan backward --arch sm90 --heads 4 --kv-heads 2 --seqlen-q 200 --causal";
  const Outcome outcome = run(shape + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["arch"], "sm90");
  EXPECT_EQ(plan["tile"], Json({64, 128}));
  ASSERT_EQ(plan["launches"].size(), 3u);
  EXPECT_EQ(plan["launches"][0]["grid"], Json({4, 4, 1}));
  EXPECT_EQ(plan["launches"][1]["entry"], "backward_sm90_d64_bf16_causal");
  EXPECT_EQ(plan["launches"][1]["grid"], Json({4, 1, 1}));  // two tiles of keys of two heads
  EXPECT_EQ(plan["workspace"]["parts"][2]["name"], "next_ticket");
  EXPECT_FALSE(plan.contains("tmem"));
  EXPECT_FALSE(plan.contains("tensor_memory"));
  EXPECT_EQ(run(shape).out.find("tensor memory"), std::string::npos);
}

TEST_F(Usage, ForwardIsJudged) {
  for (const char* problem : {"--heads 4 --kv-heads 2 --seqlen-q 300 --causal",
                              "--seqlen-q 200 --window 50,3 --sink --head-dim 128",
                              "--cu-seqlens-q 0,100,260 --cu-seqlens-k 0,70,330 --dtype fp16"}) {
    SCOPED_TRACE(problem);
    const Outcome outcome = run(std::string("run forward --json ") + problem);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json report = Json::parse(outcome.out);
    EXPECT_EQ(report["word"], "emulated");
    EXPECT_EQ(report["arch"], "sm100");
    EXPECT_TRUE(report["ok"]);
    for (const char* output : {"out", "lse"}) {
      EXPECT_TRUE(report[output]["ok"]) << output;
      EXPECT_GT(report[output]["max_abs"], 0) << output;
      EXPECT_GT(report[output]["limit"], report[output]["max_abs"]) << output;
    }
  }
  const Outcome text = run("run forward");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("out and lse are right"), std::string::npos) << text.out;
  const Outcome hopper = run("run forward --arch sm90 --json");
  ASSERT_EQ(hopper.code, 0) << hopper.err;
  EXPECT_EQ(Json::parse(hopper.out)["arch"], "sm90");
}

TEST_F(Usage, PlanOfTheForwardPass) {
  const Outcome sm90 = run("plan forward --arch sm90 --seqlen-q 300");
  EXPECT_EQ(sm90.code, 0);
  EXPECT_NE(sm90.out.find("forward_sm90_d64_bf16_dense"), std::string::npos) << sm90.out;
  EXPECT_EQ(sm90.out.find("tensor memory"), std::string::npos) << sm90.out;
  const Outcome sm100 = run("plan forward --head-dim 128");
  EXPECT_EQ(sm100.code, 0);
  EXPECT_NE(sm100.out.find("forward_sm100_d128_bf16_dense"), std::string::npos) << sm100.out;
  EXPECT_NE(sm100.out.find("tensor memory: 512 columns"), std::string::npos) << sm100.out;
  EXPECT_NE(sm100.out.find("P1   [128, 192)  16 bit, over S1"), std::string::npos) << sm100.out;
}

TEST_F(Usage, HostTimeNeedsNoDevice) {
  const Outcome outcome = run("bench --suite host --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["suite"], "host");
  EXPECT_EQ(report["command"], "flashback bench --suite host --json");
  EXPECT_EQ(report["date"].get<std::string>().substr(0, 2), "20");
  EXPECT_NE(report["commit"], "");
  ASSERT_EQ(report["rows"].size(), 2u);
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["driver"], "none");
    EXPECT_GT(row["own_us"], 0);
  }
}

// The maps of the kernel, whichever the constants are that it is compiled from, against the published
// figures: S [0, 128), dV [128, 192), dP [192, 320), dK [320, 384); P over S and dS over dP, or P [384, 448)
// and dS [448, 512).
TEST_F(Usage, PlanDrawsBothTensorMemoryMaps) {
  const std::string accumulators = "  fp32   |       S       |  dV   |      dP       |  dK   |";
  const Outcome aliased = run("plan backward --tmem aliased"), split = run("plan backward --tmem split");
  EXPECT_NE(aliased.out.find(accumulators + "    unused     |\n"), std::string::npos) << aliased.out;
  EXPECT_NE(aliased.out.find("  16 bit |   P   |               | dS dQ |               |    unused     |\n"),
            std::string::npos);
  EXPECT_NE(
      aliased.out.find("         0               128     192             320     384             512\n"),
      std::string::npos);
  EXPECT_NE(split.out.find(accumulators + "               |\n"), std::string::npos) << split.out;
  EXPECT_NE(split.out.find("  16 bit |                       |  dQ   |               |   P   |  dS   |\n"),
            std::string::npos);
  const Json both = Json::parse(run("plan backward --variants aliased/cta,split/warp --json").out)["plans"];
  ASSERT_EQ(both.size(), 2u);
  const auto first_column = [&](int plan, const char* name) {
    for (const Json& tile : both[plan]["tensor_memory"]) {
      if (tile["name"] == name) return tile["first"].get<int>();
    }
    return -1;
  };
  EXPECT_EQ(first_column(0, "P"), 0);
  EXPECT_EQ(first_column(0, "dS"), 192);
  EXPECT_EQ(first_column(1, "P"), 384);
  EXPECT_EQ(first_column(1, "dS"), 448);
}

// A copy of the command without the emulator beside it still lists and plans, and says what is missing.
TEST_F(Usage, WorksWithoutTheEmulator) {
  std::filesystem::create_directories(directory_ / "alone/bin");
  const std::string copy = (directory_ / "alone/bin/flashback").string();
  std::filesystem::copy_file(FLASHBACK_BUILD_DIR "/flashback", copy);
  EXPECT_EQ(run("list", copy).code, 0);
  EXPECT_EQ(run("plan backward", copy).code, 0);
  for (const char* command : {"run backward", "run forward"}) {
    const Outcome outcome = run(command, copy);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("flashback: the emulator could not be opened: ", 0), 0u) << outcome.err;
    EXPECT_NE(outcome.err.find("libflashback_emulator.so"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("looked for in " + (directory_ / "alone/bin").string()), std::string::npos)
        << outcome.err;
  }
}

TEST_F(Usage, ProblemsLargerThanTheMachineAreRefused) {
  const Outcome outcome = run("run backward --seqlen-q 1000000000");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("GiB with their references; this machine has"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace flashback::program
