// `flashback run forward`: one problem on a device, out and lse judged against double precision.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/launch.h"
#include "attention/reference/reference.h"
#include "attention/reference/rounding.h"
#include "attention/tolerance.h"
#include "program/arguments.h"
#include "program/device_run.h"
#include "program/generated_inputs.h"
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

// Of lse, where both are infinite they agree.
struct LseVerdict {
  double max_abs = 0, limit = 0;
  bool ok() const { return max_abs <= limit; }
};

struct ForwardReport {
  Arch arch;
  std::string device, values;
  Problem problem;
  DeviceOutputs outputs;
  Verdict out;
  LseVerdict lse;
  double wall_seconds = 0;

  bool emulated() const { return device == "emulator"; }
  bool ok() const { return out.ok && lse.ok(); }
};

// Rows that take no part have an lse of minus infinity; the reference has 0 there.
LseVerdict judge_lse(const Problem& problem, const reference::Question& question,
                     const reference::Inputs& inputs, const std::vector<float>& got,
                     const std::vector<double>& exact) {
  const Shape& s = problem.shape;
  const std::int64_t batches = question.q_packed ? 1 : s.batch;
  std::vector<bool> takes_part(static_cast<std::size_t>(batches * s.seqlen_q), question.q_rows.empty());
  for (const reference::Rows& rows : question.q_rows) {
    for (std::int64_t i = 0; i < rows.count; ++i) takes_part[static_cast<std::size_t>(rows.first + i)] = true;
  }
  LseVerdict verdict = {0, lse_limit(inputs.q, inputs.k, s.head_dim, effective_scale(problem))};
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t row = i % s.seqlen_q, batch = i / s.seqlen_q / s.heads;
    const double right = takes_part[batch * s.seqlen_q + row] ? exact[i] : -INFINITY;
    const double error = got[i] == right ? 0 : std::abs(got[i] - right);
    if (!(error <= verdict.max_abs)) verdict.max_abs = error;  // a NaN stays
  }
  return verdict;
}

Json json_of(const ForwardReport& r) {
  Json out = {{"max_abs", r.out.max_abs},
              {"rel", r.out.rel},
              {"limit", r.out.limit},
              {"block_ratio", r.out.block_ratio},
              {"ok", r.out.ok}};
  if (!r.out.ok) out["sentence"] = r.out.sentence;
  return {{"arch", name(r.arch)},
          {"device", r.device},
          {"entries", r.outputs.entries},
          {"shape", to_json(r.problem.shape)},
          {"dtype", name(r.problem.dtype)},
          {"causal", r.problem.mask == Mask::kCausal},
          {"window", {r.problem.mask.left, r.problem.mask.right}},
          {"scale", effective_scale(r.problem)},
          {"out", out},
          {"lse", {{"max_abs", r.lse.max_abs}, {"limit", r.lse.limit}, {"ok", r.lse.ok()}}},
          {"ok", r.ok()},
          {"word", r.emulated() ? "emulated" : "measured"},
          {"seconds", r.outputs.seconds},
          {"wall_seconds", r.wall_seconds}};
}

std::string text_of(const ForwardReport& r) {
  std::string text =
      fmt::format("forward   {}\nvalues    {}\ndevice    {}, {}: every number below is {}\n\n{}\n",
                  to_text(r.problem), r.values, r.device, name(r.arch),
                  r.emulated() ? "emulated" : "measured", fmt::join(r.outputs.entries, ", "));
  text += fmt::format("          {:>14}  {:>14}  {:>14}  ok\n", "max abs error", "limit", "relative error");
  text += fmt::format("  {:<6}  {:>14.4g}  {:>14.4g}  {:>14.4g}  {}\n", "out", r.out.max_abs, r.out.limit,
                      r.out.rel, r.out.ok ? "yes" : "NO");
  text += fmt::format("  {:<6}  {:>14.4g}  {:>14.4g}  {:>14}  {}\n", "lse", r.lse.max_abs, r.lse.limit, "-",
                      r.lse.ok() ? "yes" : "NO");
  if (!r.out.ok) text += fmt::format("  out: {}\n", r.out.sentence);
  return text + fmt::format("\n{}; kernels {:.3g} s{}, with references {:.3g} s.\n",
                            r.ok() ? "out and lse are right" : "AN OUTPUT IS WRONG", r.outputs.seconds,
                            r.emulated() ? " of wall time" : "", r.wall_seconds);
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
  const reference::Question question = question_of(problem, inputs.lengths);
  Progress progress(3);
  progress.step("reference in double precision");
  const reference::Answer<double> exact = reference::exact(question, inputs.tensors, threads);
  progress.step("reference in 16 bit");
  const reference::Answer<float> sixteen = reference::sixteen_bit(
      question, inputs.tensors, reference::stored(exact.out, problem.dtype), problem.dtype, threads);
  progress.step("kernels");
  const auto bits = [&](const std::vector<float>& values) {
    return reference::to_bits(problem.dtype, values);
  };
  ForwardReport report = {.arch = workbench->arch(),
                          .device = options.device,
                          .values = fmt::format("data {}, seed {}", name(data), seed),
                          .problem = problem,
                          .outputs = run_forward_on(*workbench, !cuda, problem,
                                                    {.q = bits(inputs.tensors.q),
                                                     .k = bits(inputs.tensors.k),
                                                     .v = bits(inputs.tensors.v),
                                                     .out = {},
                                                     .dout = {},
                                                     .lse = {},
                                                     .sink = inputs.tensors.sink,
                                                     .lengths = inputs.lengths}),
                          .out = {},
                          .lse = {}};
  progress.finish();
  const Shape& s = problem.shape;
  report.out = judge(reference::from_bits(problem.dtype, report.outputs.out), exact.out, sixteen.out,
                     {question.q_packed ? 1 : s.batch, s.seqlen_q, s.heads, s.head_dim}, problem.dtype);
  report.lse = judge_lse(problem, question, inputs.tensors, report.outputs.lse, exact.lse);
  report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}", options.json ? json_of(report).dump(2) + "\n" : text_of(report));
  return report.ok() ? kRight : kWrong;
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
