#include "program/mutation_run.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "attention/launch.h"
#include "device/ptx_text.h"
#include "emulator/check/checker.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/units/work_queue.h"
#include "emulator/workbench.h"
#include "program/failure.h"
#include "program/pass.h"

namespace flashback::program {
namespace {

using emulator::Completion;
using emulator::checking::Checker;
using emulator::checking::Finding;
using emulator::checking::Mutation;

// A workbench of a small GPU, on which the main kernel has another text, and maybe works in pairs of CTAs.
class WithText : public Workbench {
 public:
  WithText(std::unique_ptr<Workbench> inner, const Entry& main, const Entry* pair, const std::string& text)
      : inner_(std::move(inner)), main_(main), pair_(pair), text_(text) {}

  Arch arch() const override { return inner_->arch(); }
  int multiprocessors() const override { return 2; }
  Status encode(const TensorMapRequest& request, void* map) override { return inner_->encode(request, map); }
  Status launch(const Launch& launch, Stream stream) override {
    if (launch.entry != main_.name) return inner_->launch(launch, stream);
    KernelImage image = *launch.image;
    image.ptx = text_;
    Launch changed = launch;
    changed.image = &image;
    // Its parameters are the same, but for the order of its items.
    if (pair_ != nullptr) {
      changed.entry = pair_->name.c_str();
      changed.shared_bytes = pair_->shared_bytes;
      changed.grid.x = changed.cluster.x = 2;
    }
    return inner_->launch(changed, stream);
  }
  Status fill(Address address, std::uint32_t value, std::size_t words, Stream stream) override {
    return inner_->fill(address, value, words, stream);
  }
  Status allocate(std::size_t bytes, Address* address) override { return inner_->allocate(bytes, address); }
  void release(Address address) override { inner_->release(address); }
  Status upload(Address to, std::span<const std::byte> from, Stream stream) override {
    return inner_->upload(to, from, stream);
  }
  Status download(std::span<std::byte> to, Address from, Stream stream) override {
    return inner_->download(to, from, stream);
  }
  Status wait(Stream stream) override { return inner_->wait(stream); }
  Status mark(int which, Stream stream) override { return inner_->mark(which, stream); }
  Status elapsed(double* milliseconds) override { return inner_->elapsed(milliseconds); }

 private:
  std::unique_ptr<Workbench> inner_;
  const Entry& main_;
  const Entry* const pair_;
  const std::string& text_;
};

using Counts = std::map<std::string, std::ptrdiff_t>;  // of findings, by rule

Counts by_rule(const std::vector<Finding>& findings) {
  Counts counts;
  for (const Finding& finding : findings) ++counts[finding.rule];
  return counts;
}

// Remembers which lines of the text ran.
class ReachedLines : public Checker {
 public:
  using Checker::Checker;
  void executed(const emulator::Warp& warp, const emulator::Step& step, emulator::LaneMask mask) override {
    if (step.line >= lines.size()) lines.resize(step.line + 1);
    lines[step.line] = true;
    Checker::executed(warp, step, mask);
  }

  std::vector<bool> lines;
};

// Ends the run at the first finding that is not among the usual ones.
class ToFirstFinding : public Checker {
 public:
  ToFirstFinding(bool strict, bool fixed_sums, const Counts& usual)
      : Checker(strict, fixed_sums), usual_(usual) {}
  void executed(const emulator::Warp& warp, const emulator::Step& step, emulator::LaneMask mask) override {
    Checker::executed(warp, step, mask);
    if (findings().size() == seen_) return;
    seen_ = findings().size();
    if (const std::string rule = unusual(); !rule.empty()) throw emulator::Fault("the checker found " + rule);
  }
  // The rule of a finding that is one too many, or nothing.
  std::string unusual() const {
    for (const auto& [rule, count] : by_rule(findings())) {
      const auto usual = usual_.find(rule);
      if (count > (usual == usual_.end() ? 0 : usual->second)) return rule;
    }
    return {};
  }

 private:
  const Counts& usual_;
  std::size_t seen_ = 0;
};

// Calls f(i) for each i < count, on all cores.
template <class F>
void for_each_index(std::size_t count, F&& f) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i; (i = next++) < count;) f(i);
    } catch (...) {
      const std::lock_guard one(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::jthread& thread : threads) thread = std::jthread(work);
  }
  if (failure) std::rethrow_exception(failure);
}

class Runner {
 public:
  Runner(Arch arch, MutatedEntry which, const std::vector<MutationCase>& cases) : arch_(arch), cases_(cases) {
    for (const MutationCase& one : cases) {
      Plan plan;
      require(make_plan(arch, one.problem, &plan));
      for (const PlannedLaunch& launch : plan.launches) {
        if (launch.step == "main") main_ = launch.entry;
      }
      if (which == MutatedEntry::kPair) pair_ = &plan.kernel->pair;
    }
    require(ptx_text(image().ptx, &text_));
    plain_.resize(cases.size() * std::size(kCompletions));
    for_each_index(plain_.size(), [&](std::size_t i) {
      const MutationCase& one = cases_[i / std::size(kCompletions)];
      ReachedLines lines(true, one.problem.deterministic);
      plain_[i].results = run(one, text_, kCompletions[i % std::size(kCompletions)], lines);
      plain_[i].findings = by_rule(lines.findings());
      plain_[i].reached = std::move(lines.lines);
    });
  }

  const KernelImage& image() const { return *main_->image; }
  const std::string& text() const { return text_; }
  const std::string& entry() const { return (pair_ != nullptr ? pair_ : main_)->name; }

  Mutant run(const Mutation& mutation) const {
    const std::string text = emulator::checking::mutated(text_, mutation);
    Mutant mutant{mutation, false, {}, {}};
    for (std::size_t i = 0; i < plain_.size() && mutant.killed_by.empty(); ++i) {
      const Plain& plain = plain_[i];
      if (mutation.line >= plain.reached.size() || !plain.reached[mutation.line]) continue;
      mutant.reached = true;
      const MutationCase& one = cases_[i / std::size(kCompletions)];
      ToFirstFinding checker(true, one.problem.deterministic, plain.findings);
      const auto results = run(one, text, kCompletions[i % std::size(kCompletions)], checker);
      mutant.killed_by = checker.unusual();
      if (!mutant.killed_by.empty()) continue;
      if (!results) {
        mutant.killed_by = "fault";
      } else if (!difference(arch_, one.problem, *results, *plain.results, false).empty()) {
        mutant.killed_by = "bytes";
      }
    }
    return mutant;
  }

 private:
  static constexpr Completion kCompletions[] = {Completion::kEager, Completion::kLazy};
  struct Plain {  // a case with the kernel as it is, by completion
    std::optional<PassResults> results;
    Counts findings;
    std::vector<bool> reached;
  };

  // No results: a fault.
  std::optional<PassResults> run(const MutationCase& one, const std::string& text, Completion completion,
                                 Checker& checker) const {
    emulator::MachineOptions options;
    options.arch = arch_;
    options.observer = &checker;
    options.schedule.completion = completion;
    WithText workbench(emulator::make_workbench(options), *main_, pair_, text);
    try {
      return run_pass(workbench, one.problem, one.inputs);
    } catch (const Failure& failure) {
      if (failure.code() != kInternal) throw;
      return {};
    }
  }

  const Arch arch_;
  const std::vector<MutationCase>& cases_;
  const Entry* main_ = nullptr;  // as planned
  const Entry* pair_ = nullptr;  // which runs in its place; null: it does itself
  std::string text_;             // of its image, unchanged
  std::vector<Plain> plain_;     // of each case by each completion
};

// `size` of them, in the order of the text.
std::vector<Mutation> sampled(std::vector<Mutation> all, const MutationSample& sample) {
  if (sample.size == 0 || sample.size >= all.size()) return all;
  emulator::Random random(sample.seed);
  for (std::size_t i = 0; i < sample.size; ++i) std::swap(all[i], all[i + random.below(all.size() - i)]);
  all.resize(sample.size);
  std::sort(all.begin(), all.end(), [](const Mutation& a, const Mutation& b) { return a.begin < b.begin; });
  return all;
}

}  // namespace

MutatedKernel run_mutants(Arch arch, MutatedEntry which, const std::vector<MutationCase>& cases,
                          const MutationSample& sample, SurvivorReasons* reasons) {
  const Runner runner(arch, which, cases);
  const std::vector<Mutation> mutations =
      sampled(emulator::checking::mutations(runner.text(), runner.entry()), sample);
  MutatedKernel kernel{runner.entry(), std::vector<Mutant>(mutations.size())};
  for_each_index(mutations.size(), [&](std::size_t i) { kernel.mutants[i] = runner.run(mutations[i]); });
  reasons->begin_kernel(arch, kernel.entry);
  for (Mutant& mutant : kernel.mutants) {
    if (mutant.reached && mutant.killed_by.empty()) mutant.reason = reasons->explain(mutant.mutation);
  }
  return kernel;
}

}  // namespace flashback::program
