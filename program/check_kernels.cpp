#include "program/check_kernels.h"

#include <fmt/format.h>

#include "attention/launch.h"
#include "emulator/workbench.h"
#include "program/failure.h"
#include "program/generated_inputs.h"
#include "program/judged_forward.h"
#include "program/judged_run.h"
#include "program/mutation_problems.h"
#include "program/pass.h"
#include "program/progress.h"

namespace flashback::program {
namespace {

using emulator::checking::Checker;
using Step = std::function<void(const std::string&)>;

Plan plan_for(Arch arch, const Problem& problem) {
  Plan plan;
  require(make_plan(arch, problem, &plan));
  return plan;
}

std::string main_entry(const Plan& plan) {
  for (const PlannedLaunch& launch : plan.launches) {
    if (launch.step == "main") return launch.entry->name;
  }
  return plan.kernel->main.name;  // which has nothing to do
}

// Either pass with its references.
class Judge {
 public:
  Judge(const Problem& problem, const Step& step, RunInputs inputs) {
    if (problem.direction == Direction::kForward) {
      forward_.emplace(problem, 0, step, inputs);
    } else {
      backward_.emplace(problem, 0, step, &inputs);
    }
  }
  const DeviceInputs& inputs() const { return forward_ ? forward_->inputs() : backward_->inputs(); }
  bool right(const PassResults& results) const {
    if (forward_) return forward_->judge(std::get<DeviceOutputs>(results)).ok();
    return backward_->judge({}, std::get<DeviceGradients>(results)).ok();
  }

 private:
  std::optional<ForwardJudge> forward_;
  std::optional<BackwardJudge> backward_;
};

Checked check_kernel(Arch arch, const Problem& problem, const Judge& judge,
                     const std::vector<NamedSchedule>& schedules, bool strict) {
  Checked checked;
  checked.name = main_entry(plan_for(arch, problem));
  Checker checker(strict, problem.deterministic);
  std::optional<PassResults> first;
  const NamedSchedule* of_first = nullptr;
  for (const NamedSchedule& named : schedules) {
    const auto& [name, schedule] = named;
    const auto workbench = emulator::make_workbench(watched(arch, schedule, checker));
    try {
      PassResults results = run_pass(*workbench, problem, judge.inputs());
      if (!judge.right(results)) {
        checked.failures.push_back(fmt::format(
            "under schedule {} a result is wrong; `flashback run` with the same options may show it", name));
      }
      if (!first) {
        first = std::move(results);
        of_first = &named;
        continue;
      }
      const std::string differ = difference(arch, problem, *first, results,
                                            schedule.shuffle_ctas || of_first->schedule.shuffle_ctas);
      if (differ.empty()) continue;
      checked.failures.push_back(fmt::format("under schedule {} {} differ{} from the results of {}", name,
                                             differ, differ.find(',') == differ.npos ? "s" : "",
                                             of_first->name));
    } catch (const Failure& failure) {
      if (failure.code() != kInternal) throw;
      checked.failures.push_back(fmt::format("under schedule {}: {}", name, failure.what()));
    }
  }
  checked.findings = checker.findings();
  return checked;
}

Checked mutate_kernel(const ShippedKernel& which, const ProblemOptions& options, const CheckedValues& values,
                      const MutationSample& sample, SurvivorReasons* reasons) {
  std::vector<MutationCase> cases;
  for (const Problem& problem : which.problems) {
    RunInputs inputs = generate_inputs(options, problem, values.data, values.seed);
    cases.push_back({problem, problem.direction == Direction::kForward ? forward_inputs(problem, inputs)
                                                                       : backward_inputs(problem, &inputs)});
  }
  MutatedKernel kernel = run_mutants(which.arch, which.which, cases, sample, reasons);
  Checked checked;
  checked.name = std::move(kernel.entry);
  checked.mutants = std::move(kernel.mutants);
  return checked;
}

std::string subject_of(Arch arch, const Problem& problem) {
  const Shape& s = problem.shape;
  return fmt::format("{} on {}, batch {}, heads {}/{}, rows {}/{}, head dimension {}",
                     name(problem.direction), name(arch), s.batch, s.heads, s.kv_heads, s.seqlen_q,
                     s.seqlen_k, s.head_dim);
}

}  // namespace

emulator::MachineOptions watched(Arch arch, const emulator::Schedule& schedule, Checker& checker) {
  emulator::MachineOptions options;
  options.arch = arch;
  options.schedule = schedule;
  options.observer = &checker;
  return options;
}

void check_kernels(const ProblemOptions& options, const CheckedValues& values,
                   const std::vector<NamedSchedule>& schedules, bool strict, CheckReport* report) {
  const Arch arch = options.arch().value_or(Arch::kSm100);
  const Problem problem = options.problem();
  const auto variants = options.variants();
  for (const Variant& variant : variants) plan_for(arch, in_variant(problem, variant));

  Progress progress(2 + variants.size());
  const Step step = [&](const std::string& what) { progress.step(what); };
  const Judge judge(problem, step, generate_inputs(options, problem, values.data, values.seed));
  for (const Variant& variant : variants) {
    step("checking");
    report->checked.push_back(check_kernel(arch, in_variant(problem, variant), judge, schedules, strict));
  }
  report->subject = subject_of(arch, problem);
}

void check_mutants(const ProblemOptions& options, const CheckedValues& values, const MutationSample& sample,
                   CheckReport* report) {
  const Arch arch = options.arch().value_or(Arch::kSm100);
  const PartialShape given = options.shape();
  const bool is_given = given.seqlen_q || given.seqlen_k || options.names_lengths();
  const Problem problem = options.problem();
  const auto variants = options.variants();
  for (const Variant& variant : variants) plan_for(arch, in_variant(problem, variant));

  Progress progress(variants.size());
  SurvivorReasons reasons;
  for (const Variant& variant : variants) {
    progress.step("mutants");
    const Problem chosen = in_variant(problem, variant);
    const auto problems = is_given ? std::vector{chosen} : mutation_problems(arch, chosen);
    report->checked.push_back(
        mutate_kernel({arch, MutatedEntry::kPlanned, problems}, options, values, sample, &reasons));
  }
  report->subject = fmt::format("mutants of {} on {}", name(problem.direction), name(arch));
}

void check_all_mutants(const CheckedValues& values, const MutationSample& sample, CheckReport* report) {
  const std::vector<ShippedKernel> kernels = shipped_kernels();
  Progress progress(kernels.size());
  SurvivorReasons reasons;
  for (const ShippedKernel& kernel : kernels) {
    progress.step(main_entry(plan_for(kernel.arch, kernel.problems.front())));
    const ProblemOptions no_options(kernel.problems.front().direction);
    report->checked.push_back(mutate_kernel(kernel, no_options, values, sample, &reasons));
  }
  if (sample.size == 0) report->failures = reasons.stale();
  report->subject = fmt::format("mutants of {} kernels", kernels.size());
}

}  // namespace flashback::program
