// `flashback run forward`: one problem on a device, out and lse judged against double precision.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <nlohmann/json.hpp>

#include "attention/launch.h"
#include "program/arguments.h"
#include "program/generated_inputs.h"
#include "program/judged_forward.h"
#include "program/progress.h"
#include "program/run_device.h"
#include "program/run_report.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(Examples:
  flashback run forward                                       one head, 128 rows
  flashback run forward --heads 4 --seqlen-q 1000 --causal    ragged and masked
  flashback run forward --head-dim 128 --dtype fp16 --json    JSON on standard output
  flashback run forward --cu-seqlens-q 0,100,260 --cu-seqlens-k 0,70,330 --window 64,0 --sink)";

struct Options {
  ProblemOptions problem{Direction::kForward};
  std::optional<std::string> data, seed, threads;
  std::string device = "emulator";
  bool json = false;
};

struct ForwardReport {
  Arch arch;
  std::string device, values;
  Problem problem;
  ForwardResult result;
  double wall_seconds = 0;

  bool emulated() const { return device == "emulator"; }
};

Json json_of(const ForwardReport& r) {
  Json out = {{"max_abs", r.result.out.max_abs},
              {"rel", r.result.out.rel},
              {"limit", r.result.out.limit},
              {"block_ratio", r.result.out.block_ratio},
              {"ok", r.result.out.ok}};
  if (!r.result.out.ok) out["sentence"] = r.result.out.sentence;
  return {
      {"arch", name(r.arch)},
      {"device", r.device},
      {"entries", r.result.outputs.entries},
      {"shape", to_json(r.problem.shape)},
      {"dtype", name(r.problem.dtype)},
      {"causal", r.problem.mask == Mask::kCausal},
      {"window", {r.problem.mask.left, r.problem.mask.right}},
      {"scale", effective_scale(r.problem)},
      {"out", out},
      {"lse", {{"max_abs", r.result.lse.max_abs}, {"limit", r.result.lse.limit}, {"ok", r.result.lse.ok()}}},
      {"ok", r.result.ok()},
      {"word", r.emulated() ? "emulated" : "measured"},
      {"seconds", r.result.outputs.seconds},
      {"wall_seconds", r.wall_seconds}};
}

std::string text_of(const ForwardReport& r) {
  std::string text =
      fmt::format("forward   {}\nvalues    {}\ndevice    {}, {}: every number below is {}\n\n{}\n",
                  to_text(r.problem), r.values, r.device, name(r.arch),
                  r.emulated() ? "emulated" : "measured", fmt::join(r.result.outputs.entries, ", "));
  text += fmt::format("          {:>14}  {:>14}  {:>14}  ok\n", "max abs error", "limit", "relative error");
  text += fmt::format("  {:<6}  {:>14.4g}  {:>14.4g}  {:>14.4g}  {}\n", "out", r.result.out.max_abs,
                      r.result.out.limit, r.result.out.rel, r.result.out.ok ? "yes" : "NO");
  text += fmt::format("  {:<6}  {:>14.4g}  {:>14.4g}  {:>14}  {}\n", "lse", r.result.lse.max_abs,
                      r.result.lse.limit, "-", r.result.lse.ok() ? "yes" : "NO");
  if (!r.result.out.ok) text += fmt::format("  out: {}\n", r.result.out.sentence);
  return text + fmt::format("\n{}; kernels {:.3g} s{}, with references {:.3g} s.\n",
                            r.result.ok() ? "out and lse are right" : "AN OUTPUT IS WRONG",
                            r.result.outputs.seconds, r.emulated() ? " of wall time" : "", r.wall_seconds);
}

ExitCode run_forward(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const Problem problem = options.problem.problem();
  const reference::Data data = options.data ? parse_data(*options.data) : reference::Data::kNormal;
  const auto seed = std::uint64_t(options.seed ? parse_whole("--seed", *options.seed, 0, INT64_MAX) : 0);
  const int threads = int(options.threads ? parse_whole("--threads", *options.threads, 1, 1024) : 0);
  const std::optional<int> cuda = parse_device(options.device);
  std::optional<Arch> arch = options.problem.arch();
  if (!arch && !cuda) arch = Arch::kSm100;
  Plan plan;
  // What no kernel solves is refused before a device is asked for, unless only the device knows its
  // architecture.
  if (arch) require(make_plan(*arch, problem, &plan));
  demand_memory(problem.shape);
  const std::unique_ptr<Workbench> workbench = open_device(cuda, arch, threads);

  const RunInputs inputs = generate_inputs(options.problem, problem, data, seed);
  Progress progress(3);
  const ForwardJudge judge(
      problem, threads, [&](const std::string& what) { progress.step(what); }, inputs);
  progress.step("kernels");
  ForwardReport report = {.arch = workbench->arch(),
                          .device = options.device,
                          .values = fmt::format("data {}, seed {}", name(data), seed),
                          .problem = problem,
                          .result = judge.judge(run_forward_on(*workbench, !cuda, problem, judge.inputs()))};
  progress.finish();
  report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}", options.json ? json_of(report).dump(2) + "\n" : text_of(report));
  return report.result.ok() ? kRight : kWrong;
}

}  // namespace

void add_run_forward(CLI::App& run, Action* chosen) {
  CLI::App* forward = run.add_subcommand("forward", "out and lse of attention");
  forward->footer(kExamples);
  const auto options = std::make_shared<Options>();
  options->problem.add_to(*forward);
  const auto add = [&](const char* group, const char* name, const char* type, auto& value,
                       const char* meaning) {
    forward->add_option(name, value, meaning)->type_name(type)->group(group);
  };
  add("Values", "--data", "WORD", options->data, "normal, low, high, equal, zero or heavy [normal]");
  add("Values", "--seed", "N", options->seed, "Of the generated values [0]");
  add("Where", "--device", "WORD", options->device, "emulator or cuda:N [emulator]");
  add("Where", "--threads", "N", options->threads, "Host threads [one for each core]");
  forward->add_flag("--json", options->json, "Prints JSON");
  forward->callback([=] { *chosen = [=] { return run_forward(*options); }; });
}

}  // namespace flashback::program
