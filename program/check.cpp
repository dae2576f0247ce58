// `flashback check`: the order of a kernel's accesses, and that no schedule changes what it computes.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "attention/launch.h"
#include "emulator/check/checker.h"
#include "emulator/workbench.h"
#include "program/arguments.h"
#include "program/check_report.h"
#include "program/generated_inputs.h"
#include "program/judged_run.h"
#include "program/launch_spec.h"
#include "program/progress.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using emulator::Completion;
using emulator::MachineOptions;
using emulator::Schedule;
using emulator::checking::Checker;

constexpr const char* kExamples = R"(Examples:
  flashback check backward --seqlen-q 600 --causal           our kernel, one head
  flashback check backward --variants aliased/warp --strict  with what the PTX ISA does not promise
  flashback check backward --mutate --sample 20              does the checker notice what is left out?
  flashback check --ptx kernel.ptx --launch launch.json      anyone's kernel

A schedule says when asynchronous work takes effect: eager, lazy, or random:SEED, which also shuffles the start
of CTAs. Results must not depend on it.

Exit codes: 0 nothing found, 1 a finding, 2 usage or not supported, 3 internal.)";

struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

struct Options {
  ProblemOptions problem;
  std::optional<std::string> data, seed, ptx, launch, sample;
  std::string schedules = "eager,lazy,random:1";
  bool strict = false, fixed_sums = false, mutate = false, json = false;
};

NamedSchedule parse_schedule(const std::string& word) {
  if (word == "eager") return {word, {.completion = Completion::kEager}};
  if (word == "lazy") return {word, {.completion = Completion::kLazy}};
  if (word.starts_with("random:")) {
    const auto seed = parse_whole("the number in --schedules random:SEED", word.substr(7), 0, INT64_MAX);
    return {
        word,
        {.completion = Completion::kRandom, .seed = static_cast<std::uint64_t>(seed), .shuffle_ctas = true}};
  }
  refuse_word("an item of --schedules", word, {"eager", "lazy", "random:SEED with a number SEED"});
}

std::vector<NamedSchedule> parse_schedules(const std::string& list) {
  std::vector<NamedSchedule> schedules;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) schedules.push_back(parse_schedule(word));
  if (schedules.empty()) refuse("--schedules is empty; it must name eager, lazy or random:SEED");
  return schedules;
}

MachineOptions watched(Arch arch, const Schedule& schedule, Checker& checker) {
  MachineOptions options;
  options.arch = arch;
  options.schedule = schedule;
  options.observer = &checker;
  return options;
}

// dQ is summed by the CTAs in the order of their start, which a schedule may shuffle.
std::string difference(const DeviceGradients& a, const DeviceGradients& b, bool same_start) {
  std::string tensors;
  const auto compare = [&](const char* name, const auto& x, const auto& y) {
    if (x != y) tensors += fmt::format("{}{}", tensors.empty() ? "" : ", ", name);
  };
  if (same_start) compare("dq", a.dq, b.dq);
  compare("dk", a.dk, b.dk);
  compare("dv", a.dv, b.dv);
  return tensors;
}

Checked check_variant(Arch arch, const Problem& problem, const VariantResult& plain,
                      const DeviceInputs& inputs, const std::vector<NamedSchedule>& schedules, bool strict) {
  Checked checked;
  Plan plan;
  require(make_plan(arch, problem, &plan));
  checked.name = plan.kernel->main.name;
  if (!plain.ok())
    checked.failures.push_back("a gradient is wrong; `flashback run` with the same options shows it");
  Checker checker(strict, problem.deterministic);
  for (const NamedSchedule& named : schedules) {
    const auto workbench = emulator::make_workbench(watched(arch, named.schedule, checker));
    try {
      const DeviceGradients gradients = run_on(*workbench, true, problem, inputs);
      const std::string differ = difference(gradients, plain.gradients, !named.schedule.shuffle_ctas);
      if (!differ.empty()) {
        checked.failures.push_back(fmt::format("under schedule {} {} differ{} from a plain run", named.name,
                                               differ, differ.find(',') == differ.npos ? "s" : ""));
      }
    } catch (const Failure& failure) {
      if (failure.code() != kInternal) throw;
      checked.failures.push_back(fmt::format("under schedule {}: {}", named.name, failure.what()));
    }
  }
  checked.findings = checker.findings();
  return checked;
}

Checked mutate_variant(Arch arch, const std::vector<MutationCase>& cases, const MutationSample& sample) {
  Checked checked;
  Plan plan;
  require(make_plan(arch, cases.front().problem, &plan));
  checked.name = plan.kernel->main.name;
  checked.mutants = run_mutants(arch, cases, sample);
  return checked;
}

// The same where heads share keys and sums have a fixed order: the kernels' other ways.
Problem in_turns(Problem problem) {
  problem.shape.heads *= 2;
  problem.deterministic = true;
  return problem;
}

void check_backward(const Options& options, const std::vector<NamedSchedule>& schedules,
                    CheckReport* report) {
  const Arch arch = options.problem.arch().value_or(Arch::kSm100);
  Problem problem = options.problem.problem();
  const PartialShape given = options.problem.shape();
  if (options.mutate && !given.seqlen_q && !given.seqlen_k) {
    // Every ring of the kernels comes round: one CTA after three query tiles, on sm_90a after four key tiles.
    problem.shape.seqlen_q = arch == Arch::kSm100 ? 384 : 256;
    problem.shape.seqlen_k = arch == Arch::kSm100 ? 384 : 1024;
  }
  std::vector<Problem> problems = {problem};
  if (options.mutate) problems.push_back(in_turns(problem));
  const auto variants = options.problem.variants();
  for (const Problem& one : problems) {
    for (const Variant& variant : variants) {
      Plan plan;
      require(make_plan(arch, in_variant(one, variant), &plan));
    }
  }
  const auto data = options.data ? parse_data(*options.data) : reference::Data::kNormal;
  const auto seed =
      static_cast<std::uint64_t>(options.seed ? parse_whole("--seed", *options.seed, 0, INT64_MAX) : 0);
  const std::size_t sample =
      options.sample ? static_cast<std::size_t>(parse_whole("--sample", *options.sample, 1, 1 << 20)) : 0;

  Progress progress((2 + variants.size()) * problems.size() + variants.size());
  const auto step = [&](const std::string& what) { progress.step(what); };
  std::unique_ptr<Workbench> workbench;
  require(open_emulator(arch, 0, &workbench));
  std::vector<JudgedRun> runs;
  for (const Problem& one : problems) {
    RunInputs inputs = generate_inputs(options.problem, one, data, seed);
    runs.push_back(run_and_judge(*workbench, true, one, variants, 0, step, &inputs));
  }
  for (std::size_t v = 0; v < variants.size(); ++v) {
    if (options.mutate) {
      step("mutants");
      std::vector<MutationCase> cases;
      for (std::size_t i = 0; i < problems.size(); ++i)
        cases.push_back({in_variant(problems[i], variants[v]), runs[i].inputs});
      report->checked.push_back(mutate_variant(arch, cases, {sample, seed}));
    } else {
      step("checking");
      report->checked.push_back(check_variant(arch, in_variant(problem, variants[v]), runs.front().results[v],
                                              runs.front().inputs, schedules, options.strict));
    }
  }
  const Shape& s = problem.shape;
  report->subject = fmt::format("backward on {}, batch {}, heads {}/{}, rows {}/{}, head dimension {}",
                                name(arch), s.batch, s.heads, s.kv_heads, s.seqlen_q, s.seqlen_k, s.head_dim);
}

Arch arch_of(const std::string& ptx) {
  if (ptx.find(".target sm_100") != ptx.npos) return Arch::kSm100;
  if (ptx.find(".target sm_90") != ptx.npos) return Arch::kSm90;
  refuse("--ptx names a text without .target sm_90a or sm_100a; the emulator runs these two");
}

void check_ptx(const Options& options, const std::vector<NamedSchedule>& schedules, CheckReport* report) {
  if (!options.ptx || !options.launch) refuse("--ptx and --launch belong together; one of them is missing");
  std::ifstream file(*options.ptx, std::ios::binary);
  if (!file) refuse(fmt::format("--ptx is {}, which cannot be read", *options.ptx));
  const std::string ptx{std::istreambuf_iterator<char>(file), {}};
  const LaunchSpec spec = read_launch_spec(*options.launch);
  const Arch arch = arch_of(ptx);
  Checked checked;
  checked.name = spec.entry;
  Checker checker(options.strict, options.fixed_sums);
  for (const NamedSchedule& named : schedules) {
    const auto workbench = emulator::make_workbench(watched(arch, named.schedule, checker));
    const Status status = launch(*workbench, spec, ptx);
    if (!status.ok() && status.code() != Code::kDevice) require(status);
    if (!status.ok())
      checked.failures.push_back(fmt::format("under schedule {}: {}", named.name, status.sentence()));
  }
  checked.findings = checker.findings();
  report->checked.push_back(std::move(checked));
  report->subject = fmt::format("{} of {} on {}", spec.entry, *options.ptx, name(arch));
}

ExitCode run_check(const Options& options, bool backward) {
  const auto start = std::chrono::steady_clock::now();
  CheckReport report;
  const std::vector<NamedSchedule> schedules = parse_schedules(options.schedules);
  for (const NamedSchedule& named : schedules) report.schedules.push_back(named.name);
  report.strict = options.strict;
  if (backward) {
    check_backward(options, schedules, &report);
  } else {
    check_ptx(options, schedules, &report);
  }
  report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    fmt::print("{}", to_text(report));
  }
  return report.ok() ? kRight : kWrong;
}

}  // namespace

void add_check(CLI::App& flashback, Action* chosen) {
  CLI::App* check =
      flashback.add_subcommand("check", "Finds missing synchronisation in a kernel, on the emulator");
  check->footer(kExamples);
  const auto options = std::make_shared<Options>();
  const auto add_common = [&](CLI::App& app) {
    app.add_option("--schedules", options->schedules, "eager, lazy, random:SEED [eager,lazy,random:1]")
        ->type_name("LIST");
    app.add_flag("--strict", options->strict,
                 "Gives advice where the PTX ISA promises less than hardware does");
    app.add_flag("--json", options->json, "Prints JSON");
  };
  check->require_subcommand(0, 1);
  check->add_option("--ptx", options->ptx, "A kernel's text")->type_name("FILE");
  check->add_option("--launch", options->launch, "How it is launched: JSON")->type_name("FILE");
  check->add_flag("--deterministic", options->fixed_sums,
                  "Sums of floats in memory must come in a fixed order");
  add_common(*check);
  CLI::App* backward = check->add_subcommand("backward", "Our kernels of the backward pass");
  backward->footer(kExamples);
  options->problem.add_to(*backward);
  backward->add_option("--data", options->data, "normal, low, high, equal, zero or heavy [normal]")
      ->type_name("WORD")
      ->group("Values");
  backward->add_option("--seed", options->seed, "Of the generated values [0]")
      ->type_name("N")
      ->group("Values");
  backward->add_flag("--mutate", options->mutate, "Leaves out one piece of synchronisation at a time");
  backward->add_option("--sample", options->sample, "So many of them, chosen by --seed [all]")
      ->type_name("N");
  add_common(*backward);
  check->callback([=] {
    const bool is_backward = backward->parsed();
    *chosen = [=] { return run_check(*options, is_backward); };
  });
}

}  // namespace flashback::program
