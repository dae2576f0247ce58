// `flashback check`: the order of a kernel's accesses, and that no schedule changes what it computes.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <fstream>
#include <sstream>

#include "emulator/workbench.h"
#include "program/arguments.h"
#include "program/check_kernels.h"
#include "program/generated_inputs.h"
#include "program/launch_spec.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using emulator::Completion;
using emulator::checking::Checker;

constexpr const char* kExamples = R"(Examples:
  flashback check backward --seqlen-q 600 --causal           our kernel, one head
  flashback check backward --variants aliased/warp --strict  with what the PTX ISA does not promise
  flashback check forward --arch sm90 --head-dim 128 --strict
  flashback check backward --mutate --sample 20              does the checker notice what is left out?
  flashback check --mutate                                   the same of every kernel of ours, whole
  flashback check --ptx kernel.ptx --launch launch.json      anyone's kernel

A schedule says when asynchronous work takes effect: eager, lazy, or random:SEED, which also shuffles the start
of CTAs. Results must not depend on it.

Exit codes: 0 nothing found, 1 a finding, 2 usage or not supported, 3 internal.)";

struct Options {
  ProblemOptions problem;
  std::optional<std::string> data, seed, sample, ptx, launch;
  std::string schedules = "eager,lazy,random:1";
  bool strict = false, fixed_sums = false, mutate = false, json = false;

  explicit Options(Direction direction = Direction::kBackward) : problem(direction) {}
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

CheckedValues values_of(const Options& options) {
  CheckedValues values;
  if (options.data) values.data = parse_data(*options.data);
  if (options.seed)
    values.seed = static_cast<std::uint64_t>(parse_whole("--seed", *options.seed, 0, INT64_MAX));
  return values;
}

MutationSample sample_of(const Options& options, const CheckedValues& values) {
  if (!options.sample) return {0, values.seed};
  if (!options.mutate) {
    refuse(fmt::format("--sample is {}, of mutants; without --mutate there are none", *options.sample));
  }
  return {static_cast<std::size_t>(parse_whole("--sample", *options.sample, 1, 1 << 20)), values.seed};
}

// `of_pass`: the kernels that the options of a subcommand choose.
ExitCode run_check(const Options& options, bool of_pass) {
  const auto start = std::chrono::steady_clock::now();
  CheckReport report;
  const std::vector<NamedSchedule> schedules = parse_schedules(options.schedules);
  const CheckedValues values = values_of(options);
  const MutationSample sample = sample_of(options, values);
  report.strict = options.strict || options.mutate;
  if (!options.mutate) {
    for (const NamedSchedule& named : schedules) report.schedules.push_back(named.name);
  }
  if (of_pass && options.mutate) {
    check_mutants(options.problem, values, sample, &report);
  } else if (of_pass) {
    check_kernels(options.problem, values, schedules, options.strict, &report);
  } else if (options.mutate) {
    if (options.ptx) {
      refuse(fmt::format(
          "--ptx is {}, but --mutate leaves out pieces of our own kernels; leave one of the two out",
          *options.ptx));
    }
    check_all_mutants(values, sample, &report);
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

void add_common(CLI::App& app, Options& options) {
  app.add_option("--schedules", options.schedules, "eager, lazy, random:SEED [eager,lazy,random:1]")
      ->type_name("LIST");
  app.add_flag("--strict", options.strict, "Gives advice where the PTX ISA promises less than hardware does");
  app.add_flag("--json", options.json, "Prints JSON");
}

void add_mutation(CLI::App& app, Options& options, const char* meaning) {
  app.add_flag("--mutate", options.mutate, meaning)->group("Mutation");
  app.add_option("--sample", options.sample, "So many of them of a kernel, chosen by --seed [all]")
      ->type_name("N")
      ->group("Mutation");
  app.add_option("--seed", options.seed, "Of the generated values, and of the sample [0]")
      ->type_name("N")
      ->group("Values");
}

std::shared_ptr<Options> add_pass(CLI::App& check, const char* name, const char* meaning, Direction direction,
                                  CLI::App** pass) {
  const auto options = std::make_shared<Options>(direction);
  *pass = check.add_subcommand(name, meaning);
  (*pass)->footer(kExamples);
  options->problem.add_to(**pass);
  (*pass)
      ->add_option("--data", options->data, "normal, low, high, equal, zero or heavy [normal]")
      ->type_name("WORD")
      ->group("Values");
  add_mutation(**pass, *options, "Leaves out one piece of synchronisation at a time");
  add_common(**pass, *options);
  return options;
}

}  // namespace

void add_check(CLI::App& flashback, Action* chosen) {
  CLI::App* check =
      flashback.add_subcommand("check", "Finds missing synchronisation in a kernel, on the emulator");
  check->footer(kExamples);
  check->require_subcommand(0, 1);
  const auto options = std::make_shared<Options>();
  check->add_option("--ptx", options->ptx, "A kernel's text")->type_name("FILE");
  check->add_option("--launch", options->launch, "How it is launched: JSON")->type_name("FILE");
  check->add_flag("--deterministic", options->fixed_sums,
                  "Sums of floats in memory must come in a fixed order");
  add_mutation(*check, *options,
               "Every kernel of ours, with one piece of synchronisation left out at a time");
  add_common(*check, *options);
  CLI::App *backward, *forward;
  const auto of_backward =
      add_pass(*check, "backward", "Our kernels of the backward pass", Direction::kBackward, &backward);
  const auto of_forward =
      add_pass(*check, "forward", "Our kernels of the forward pass", Direction::kForward, &forward);
  check->callback([=] {
    const auto pass = backward->parsed() ? of_backward : forward->parsed() ? of_forward : nullptr;
    *chosen = [=] { return pass != nullptr ? run_check(*pass, true) : run_check(*options, false); };
  });
}

}  // namespace flashback::program
