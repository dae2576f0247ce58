#include "program/mutation_run.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "attention/launch.h"
#include "emulator/check/checker.h"
#include "emulator/machine/units/work_queue.h"
#include "emulator/workbench.h"
#include "program/failure.h"
#include "program/survivors.h"

namespace flashback::program {
namespace {

using emulator::Completion;
using emulator::checking::Checker;
using emulator::checking::Finding;
using emulator::checking::Mutation;

// A workbench on which one image has another text.
class WithText : public Workbench {
 public:
  WithText(std::unique_ptr<Workbench> inner, std::string_view image, const std::string& text)
      : inner_(std::move(inner)), image_(image), text_(text) {}

  Arch arch() const override { return inner_->arch(); }
  int multiprocessors() const override { return inner_->multiprocessors(); }
  Status encode(const TensorMapRequest& request, void* map) override { return inner_->encode(request, map); }
  Status launch(const Launch& launch, Stream stream) override {
    if (launch.image->name != image_) return inner_->launch(launch, stream);
    KernelImage image = *launch.image;
    image.ptx = text_;
    Launch changed = launch;
    changed.image = &image;
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
  std::string_view image_;
  const std::string& text_;
};

struct Outcome {
  std::vector<Finding> findings;
  std::optional<DeviceGradients> gradients;  // none: a fault
};

class Runner {
 public:
  Runner(Arch arch, const Problem& problem, const DeviceInputs& inputs)
      : arch_(arch), problem_(problem), inputs_(inputs) {
    require(make_plan(arch, problem, &plan_));
    for (const Completion completion : kCompletions)
      plain_.push_back(run(std::string(image().ptx), completion));
  }

  const KernelImage& image() const { return *find_image(plan_.kernel->main.image); }
  const std::string& entry() const { return plan_.kernel->main.name; }

  std::string killed_by(const Mutation& mutation) const {
    const std::string text = emulator::checking::mutated(image().ptx, mutation);
    for (std::size_t c = 0; c < std::size(kCompletions); ++c) {
      const Outcome outcome = run(text, kCompletions[c]);
      std::set<std::string> how;
      for (const Finding& finding : outcome.findings) {
        if (count(outcome, finding.rule) > count(plain_[c], finding.rule)) how.insert(finding.rule);
      }
      if (!outcome.gradients) {
        how.insert("fault");
      } else if (outcome.gradients->dq != plain_[c].gradients->dq ||
                 outcome.gradients->dk != plain_[c].gradients->dk ||
                 outcome.gradients->dv != plain_[c].gradients->dv) {
        how.insert("bytes");
      }
      if (how.empty()) continue;
      std::string words;
      for (const std::string& word : how) words += (words.empty() ? "" : ", ") + word;
      return words;
    }
    return "";
  }

 private:
  static constexpr Completion kCompletions[] = {Completion::kEager, Completion::kLazy};

  static std::size_t count(const Outcome& outcome, const std::string& rule) {
    return static_cast<std::size_t>(std::count_if(outcome.findings.begin(), outcome.findings.end(),
                                                  [&](const Finding& f) { return f.rule == rule; }));
  }

  Outcome run(const std::string& text, Completion completion) const {
    Checker checker(true);
    emulator::MachineOptions options;
    options.arch = arch_;
    options.observer = &checker;
    options.schedule.completion = completion;
    WithText workbench(emulator::make_workbench(options), image().name, text);
    Outcome outcome;
    try {
      outcome.gradients = run_on(workbench, true, problem_, inputs_);
    } catch (const Failure& failure) {
      if (failure.code() != kInternal) throw;
    }
    outcome.findings = checker.findings();
    return outcome;
  }

  const Arch arch_;
  const Problem& problem_;
  const DeviceInputs& inputs_;
  Plan plan_;
  std::vector<Outcome> plain_;
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

std::vector<Mutant> run_mutants(Arch arch, const Problem& problem, const DeviceInputs& inputs,
                                const MutationSample& sample) {
  const Runner runner(arch, problem, inputs);
  SurvivorReasons reasons(arch, runner.entry());
  std::vector<Mutant> mutants;
  const std::vector<Mutation> mutations =
      sampled(emulator::checking::mutations(runner.image().ptx, runner.entry()), sample);
  for (const Mutation& mutation : mutations) {
    Mutant mutant{mutation, runner.killed_by(mutation), {}};
    if (mutant.killed_by.empty()) mutant.reason = reasons.explain(mutation);
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace flashback::program
