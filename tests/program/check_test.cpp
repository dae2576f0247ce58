// `flashback check` from end to end.
#include "tests/program/command.h"

namespace flashback::program {
namespace {

using Json = nlohmann::json;

class Check : public Command {
 protected:
  static std::string example(const char* file) {
    return std::string(FLASHBACK_SOURCE_DIR "/examples/check/") + file;
  }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return name;
  }
  std::string launch_with(const std::string& parameters) const {
    return write("launch.json",
                 R"({"entry": "scale", "grid": [2], "block": [64], "params": [)" + parameters + "]}");
  }
};

TEST_F(Check, OurKernelsAreCleanUnderAllSchedules) {
  const Outcome outcome =
      run("check backward --variants aliased/cta,split/warp --seqlen-q 200 --causal --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["schedules"], Json({"eager", "lazy", "random:1"}));
  ASSERT_EQ(report["checked"].size(), 2u);
  EXPECT_EQ(report["checked"][1]["name"], "backward_sm100_d64_bf16_causal_split_warp");
}

TEST_F(Check, StrictNamesTheOrderOfIssueOfTheAliasedMap) {
  const Outcome outcome =
      run("check backward --variants aliased/warp --seqlen-q 300 --strict --schedules eager --json");
  ASSERT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  const Json findings = Json::parse(outcome.out)["checked"][0]["findings"];
  ASSERT_EQ(findings.size(), 2u);
  for (const Json& finding : findings) {
    EXPECT_EQ(finding["rule"], "mma-order");
    EXPECT_EQ(finding["severity"], "advice");
  }
  EXPECT_EQ(run("check backward --variants split/warp --seqlen-q 300 --strict --schedules eager").code, 0);
}

TEST_F(Check, HopperIsCleanAlsoWhenStrict) {
  for (const char* shape : {"--heads 4 --kv-heads 2 --seqlen-q 200 --seqlen-k 300",
                            "--heads 2 --kv-heads 1 --seqlen-q 200 --seqlen-k 300 --head-dim 128"}) {
    const Outcome outcome = run(std::string("check backward --arch sm90 --causal --strict ") + shape);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  }
}

TEST_F(Check, ForwardIsCleanAlsoWhenStrict) {
  for (const char* kernel : {"--arch sm90 --causal", "--arch sm90 --head-dim 128 --window 60,20 --sink",
                             "--arch sm100 --window 60,20", "--arch sm100 --causal --dtype fp16"}) {
    const Outcome outcome = run(
        std::string("check forward --strict --heads 2 --kv-heads 1 --seqlen-q 200 --seqlen-k 300 ") + kernel);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  }
}

TEST_F(Check, StrictNamesTheOrderOfIssueWherePLiesOverS) {
  const Outcome outcome = run("check forward --head-dim 128 --seqlen-q 300 --strict --json");
  ASSERT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  const Json checked = Json::parse(outcome.out)["checked"][0];
  EXPECT_EQ(checked["name"], "forward_sm100_d128_bf16_dense");
  EXPECT_TRUE(checked["failures"].empty());
  ASSERT_EQ(checked["findings"].size(), 2u);
  for (const Json& finding : checked["findings"]) EXPECT_EQ(finding["rule"], "mma-order");
  EXPECT_EQ(run("check forward --head-dim 128 --seqlen-q 300").code, 0);
}

TEST_F(Check, TheExampleLacksABarrierThatItNames) {
  const std::string arguments = "check --ptx " + example("scale.ptx") + " --launch " + example("launch.json");
  const Outcome broken = run(arguments);
  EXPECT_EQ(broken.code, 1) << broken.err;
  EXPECT_NE(broken.out.find("error race"), std::string::npos) << broken.out;
  EXPECT_NE(broken.out.find("nothing orders the two"), std::string::npos) << broken.out;

  std::string text = content(example("scale.ptx"));
  const std::string comment = "// bar.sync 0;";
  ASSERT_NE(text.find(comment), std::string::npos);
  text.replace(text.find(comment), comment.size(), "bar.sync 0;");
  const Outcome whole =
      run("check --ptx " + write("whole.ptx", text) + " --launch " + example("launch.json"));
  EXPECT_EQ(whole.code, 0) << whole.out << whole.err;
}

TEST_F(Check, AFaultIsAFinding) {
  const Outcome outcome =
      run("check --ptx " + example("scale.ptx") + " --launch " +
          launch_with(R"({"buffer": 256}, {"scalar": "f32", "value": 2})") + " --schedules eager");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("no allocation holds them"), std::string::npos) << outcome.out;
}

TEST_F(Check, ALaunchSpecThatIsWrongIsRefusedByItsKey) {
  const std::string ptx = "check --ptx " + example("scale.ptx") + " --launch ";
  expect_refused(ptx + "none.json", "--launch is none.json, which cannot be read");
  expect_refused(ptx + launch_with(R"({"scalar": "f16", "value": 2})"),
                 "\"scalar\" of params[0] is \"f16\"; it must be u32, s32, u64, s64, f32 or f64");
  expect_refused(ptx + launch_with(R"({"buffer": -4})"),
                 "\"buffer\" of params[0] is -4; it must be a whole number from 0 to 8589934592");
  expect_refused(
      ptx + launch_with(R"({"bufer": 4})"),
      "params[0] has the key \"bufer\"; known are scalar, value, buffer, name, fill, file, tensor_map, dims, "
      "strides, box, swizzle, dtype");
  const std::string huge = launch_with(R"({"buffer": 1e999})");
  expect_refused(ptx + huge, "--launch is " + huge +
                                 ", which is not JSON: [json.exception.out_of_range.406] number overflow "
                                 "parsing '1e999'");
  expect_refused(ptx + launch_with("{}"),
                 "params[0] must have one of the keys \"scalar\", \"buffer\" and \"tensor_map\"");
  expect_refused(ptx + launch_with(R"({"scalar": "u32", "value": 4294967296})"),
                 "\"value\" of params[0] is 4294967296; it must be a whole number from 0 to 4294967295");
  expect_refused(ptx + launch_with(R"({"scalar": "s32", "value": 2.5})"),
                 "\"value\" of params[0] is 2.5; it must be a whole number from -2147483648 to 2147483647");
  expect_refused(
      ptx + write("launch.json", R"({"entry": "scale", "grid": [4294967297], "block": [1], "params": []})"),
      "an item of \"grid\" of launch.json is 4294967297; it must be a whole number from 0 to 2147483647");
  expect_refused(ptx + write("launch.json", R"({"entry": "scale", "grid": [2], "params": []})"),
                 "launch.json has no key \"block\"");
  expect_refused("check --ptx " + example("scale.ptx"),
                 "--ptx and --launch belong together; one of them is missing");
  expect_refused(
      "check backward --schedules sometimes",
      "an item of --schedules is sometimes; it must be one of eager, lazy, random:SEED with a number SEED");
}

}  // namespace
}  // namespace flashback::program
