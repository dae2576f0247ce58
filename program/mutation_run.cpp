#include "program/mutation_run.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <set>
#include <thread>

#include "attention/launch.h"
#include "device/ptx_text.h"
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

// A workbench of a small GPU, on which one image has another text.
class WithText : public Workbench {
 public:
  WithText(std::unique_ptr<Workbench> inner, std::string_view image, const std::string& text)
      : inner_(std::move(inner)), image_(image), text_(text) {}

  Arch arch() const override { return inner_->arch(); }
  int multiprocessors() const override { return 2; }
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

// Remembers which lines of the text ran.
class ReachedLines : public Checker {
 public:
  explicit ReachedLines(const Problem& problem) : Checker(true, problem.deterministic) {}
  void executed(const emulator::Warp& warp, const emulator::Step& step, emulator::LaneMask mask) override {
    if (step.line >= lines.size()) lines.resize(step.line + 1);
    lines[step.line] = true;
    Checker::executed(warp, step, mask);
  }

  std::vector<bool> lines;
};

struct Outcome {
  std::vector<Finding> findings;
  std::optional<DeviceGradients> gradients;  // none: a fault
};

class Runner {
 public:
  Runner(Arch arch, const std::vector<MutationCase>& cases) : arch_(arch), cases_(cases) {
    for (const MutationCase& one : cases) {
      Plan plan;
      require(make_plan(arch, one.problem, &plan));
      kernel_ = &plan.kernel->main;
      if (text_.empty()) require(ptx_text(image().ptx, &text_));
      Reference& plain = plain_.emplace_back();
      for (const Completion completion : kCompletions) {
        ReachedLines lines(one.problem);
        plain.outcomes.push_back(run(one, text_, completion, &lines));
        plain.reached.push_back(std::move(lines.lines));
      }
    }
  }

  const KernelImage& image() const { return *find_image(kernel_->image); }
  const std::string& text() const { return text_; }
  const std::string& entry() const { return kernel_->name; }

  Mutant run(const Mutation& mutation) const {
    const std::string text = emulator::checking::mutated(text_, mutation);
    Mutant mutant{mutation, false, {}, {}};
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      for (std::size_t c = 0; c < std::size(kCompletions); ++c) {
        const std::vector<bool>& reached = plain_[i].reached[c];
        if (mutation.line >= reached.size() || !reached[mutation.line]) continue;
        mutant.reached = true;
        Checker checker(true, cases_[i].problem.deterministic);
        mutant.killed_by = difference(run(cases_[i], text, kCompletions[c], &checker), plain_[i].outcomes[c]);
        if (!mutant.killed_by.empty()) return mutant;
      }
    }
    return mutant;
  }

 private:
  static constexpr Completion kCompletions[] = {Completion::kEager, Completion::kLazy};
  struct Reference {  // a case with the kernel as it is, by completion
    std::vector<Outcome> outcomes;
    std::vector<std::vector<bool>> reached;
  };

  static std::string difference(const Outcome& outcome, const Outcome& plain) {
    const auto count = [](const Outcome& o, const std::string& rule) {
      return std::count_if(o.findings.begin(), o.findings.end(),
                           [&](const Finding& f) { return f.rule == rule; });
    };
    std::set<std::string> how;
    for (const Finding& finding : outcome.findings) {
      if (count(outcome, finding.rule) > count(plain, finding.rule)) how.insert(finding.rule);
    }
    if (!outcome.gradients) {
      how.insert("fault");
    } else if (outcome.gradients->dq != plain.gradients->dq || outcome.gradients->dk != plain.gradients->dk ||
               outcome.gradients->dv != plain.gradients->dv) {
      how.insert("bytes");
    }
    std::string words;
    for (const std::string& word : how) words += (words.empty() ? "" : ", ") + word;
    return words;
  }

  Outcome run(const MutationCase& one, const std::string& text, Completion completion,
              Checker* checker) const {
    emulator::MachineOptions options;
    options.arch = arch_;
    options.observer = checker;
    options.schedule.completion = completion;
    WithText workbench(emulator::make_workbench(options), image().name, text);
    Outcome outcome;
    try {
      outcome.gradients = run_on(workbench, true, one.problem, one.inputs);
    } catch (const Failure& failure) {
      if (failure.code() != kInternal) throw;
    }
    outcome.findings = checker->findings();
    return outcome;
  }

  const Arch arch_;
  const std::vector<MutationCase>& cases_;
  const Entry* kernel_ = nullptr;
  std::string text_;  // of its image, unchanged
  std::vector<Reference> plain_;
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

std::vector<Mutant> run_mutants(Arch arch, const std::vector<MutationCase>& cases,
                                const MutationSample& sample) {
  const Runner runner(arch, cases);
  const std::vector<Mutation> mutations =
      sampled(emulator::checking::mutations(runner.text(), runner.entry()), sample);
  std::vector<Mutant> mutants(mutations.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < mutations.size();) mutants[i] = runner.run(mutations[i]);
  };
  {
    std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::jthread& thread : threads) thread = std::jthread(work);
  }
  SurvivorReasons reasons(arch, runner.entry());
  for (Mutant& mutant : mutants) {
    if (mutant.reached && mutant.killed_by.empty()) mutant.reason = reasons.explain(mutant.mutation);
  }
  return mutants;
}

}  // namespace flashback::program
