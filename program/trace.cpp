// `flashback trace backward`: one CTA of the main kernel over time, as predicted and as a GPU ran it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>

#include "attention/launch.h"
#include "bench/clocks/timeline.h"
#include "bench/recorded.h"
#include "emulator/trace/trace.h"
#include "program/arguments.h"
#include "program/judged_run.h"
#include "program/run_device.h"
#include "program/section_colours.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

namespace trace = emulator::trace;

constexpr std::int64_t kTile = 128, kTiles = 24;  // enough for a steady state
constexpr std::int64_t kMeasuredHeads = 33;
constexpr int kMeasuredRuns = 6;

constexpr const char* kExamples = R"(Examples:
  flashback trace backward --out tile.svg
  flashback trace backward --variants aliased/cta,split/warp --out both.svg    side by side, on one scale
  flashback trace backward --causal --out tile.json                            for Perfetto or chrome://tracing
  flashback trace backward --arch sm90 --out tile.txt
  flashback trace backward --device cuda:0 --out tile.svg                      measured above, predicted below

A predicted run: the emulator executes the kernel, and its timing model says when everything happens on an SM
that runs this CTA. A measured one: the GPU runs the kernel on all its SMs, with a reading of the clock at each
mark and wait of CTA 0; units have no clock of their own and are drawn from the request to the end of the wait.)";

enum class Format { kSvg, kJson, kText };

Format format_of(const std::string& out) {
  if (out.ends_with(".svg")) return Format::kSvg;
  if (out.ends_with(".json")) return Format::kJson;
  if (out.ends_with(".txt")) return Format::kText;
  refuse(fmt::format("--out is {}; it must end in .svg, .json or .txt, which says what is written", out));
}

emulator::timing::Recording record(Arch arch, const Problem& problem, int tiles) {
  Plan plan;
  require(make_plan(arch, problem, &plan));
  for (const PlannedLaunch& launch : plan.launches) {
    if (launch.step == "main" && launch.entry->name != plan.kernel->main.name) {
      refuse(fmt::format(
          "these lengths run {}, pairs of CTAs, and what is predicted is one CTA; shorter ones run {}",
          launch.entry->name, plan.kernel->main.name));
    }
  }
  bench::Recordings recordings = bench::record(arch, problem, {&tiles, 1});
  return std::move(recordings.begin()->second);
}

trace::Run predict(Arch arch, const emulator::timing::Recording& recording) {
  trace::Run run;
  run.title = recording.kernel->name;
  run.outcome = emulator::timing::replay(recording, emulator::timing::nominal(arch), &run.timeline);
  if (!run.outcome.ok()) throw Failure(kInternal, "the replay stops: " + run.outcome.error);
  return run;
}

// Whether a tile's sections begin in the predicted order.
void print_order(const trace::Run& measured, const trace::Run& predicted,
                 const emulator::timing::Recording& recording) {
  const emulator::timing::Dependences dependences(recording);
  if (!dependences.error().empty()) throw Failure(kInternal, dependences.error());
  const trace::Order order = trace::compare_order(measured, predicted, dependences);
  fmt::print(
      "order of a tile's sections: of {} pairs in which one must come first, {} as predicted; of {} where "
      "time decides, {}\n",
      order.dependent, order.dependent_kept, order.free, order.free_kept);
  for (const std::string& difference : order.differences) fmt::print("  {}\n", difference);
}

// The GPU's run, and on standard output what the clocks cost.
trace::Run measured_run_of(int cuda, const Problem& problem, const trace::Run& predicted) {
  double untraced = 0, traced = 0;
  trace::Run run;
  for (const clocks::Where where : {clocks::Where::kEnds, clocks::Where::kSections}) {
    clocks::ClockedPass pass(open_device(cuda, {}, 0));
    require(pass.prepare(problem, where));
    // The first run loads code; of the others the middle one counts.
    std::vector<std::pair<double, std::vector<std::vector<clocks::Stamp>>>> runs(kMeasuredRuns);
    for (auto& [cycles, stamps] : runs) {
      require(pass.run(&stamps));
      for (const std::vector<clocks::Stamp>& warp : stamps) cycles = std::max(cycles, warp.back().cycle);
    }
    std::sort(runs.begin() + 1, runs.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    const auto& [cycles, stamps] = runs[1 + (kMeasuredRuns - 1) / 2];
    if (where == clocks::Where::kEnds) {
      untraced = cycles;
    } else {
      traced = cycles;
      run = clocks::timeline_of(pass.places(), stamps, predicted);
    }
  }
  fmt::print(
      "{}: CTA 0 takes {:.0f} cycles, and {:.0f} with a clock at each mark and wait: {:+.1f} % (measured)\n",
      run.title, untraced, traced, 100 * (traced / untraced - 1));
  return run;
}

ExitCode run_trace(const ProblemOptions& options, const std::string& device, const std::string& out) {
  const Format format = format_of(out);
  const PartialShape given = options.shape();
  Problem problem = options.problem();
  if (!given.seqlen_q) problem.shape.seqlen_q = problem.shape.seqlen_k = kTile * kTiles;
  const std::optional<int> cuda = parse_device(device);
  Arch arch = options.arch().value_or(Arch::kSm100);
  if (cuda) {
    arch = open_device(cuda, options.arch(), 0)->arch();
    // Enough that every SM has several items.
    if (!given.heads) problem.shape.heads = problem.shape.kv_heads = kMeasuredHeads;
  }
  const auto tiles = static_cast<int>((problem.shape.seqlen_q + kTile - 1) / kTile);

  std::vector<trace::Run> runs;
  for (const Variant& variant : options.variants()) {
    const Problem chosen = in_variant(problem, variant);
    const emulator::timing::Recording recording = record(arch, chosen, tiles);
    const trace::Run predicted = predict(arch, recording);
    if (cuda) {
      runs.push_back(measured_run_of(*cuda, chosen, predicted));
      print_order(runs.back(), predicted, recording);
    }
    runs.push_back(predicted);
  }
  std::ofstream file(out, std::ios::binary);
  file << (format == Format::kSvg    ? trace::svg(runs, kSectionColours)
           : format == Format::kJson ? trace::chrome_json(runs)
                                     : trace::text(runs));
  file.close();
  if (!file) refuse(fmt::format("--out is {}; it cannot be written", out));
  for (const trace::Run& run : runs) {
    const trace::SteadyTile tile = trace::steady_tile(run);
    fmt::print("{}: {:.0f} cycles", run.title, run.outcome.cycles);
    if (tile.cycles > 0) fmt::print(", {:.0f} a tile in the steady state", tile.cycles);
    fmt::print(" ({})\n", run.word);
  }
  return kRight;
}

}  // namespace

void add_trace(CLI::App& flashback, Action* chosen) {
  CLI::App* trace =
      flashback.add_subcommand("trace", "Draws the timeline of a kernel, as predicted and as a GPU ran it");
  trace->require_subcommand(1);
  trace->footer(kExamples);
  CLI::App* backward = trace->add_subcommand("backward", "The main kernel of the backward pass");
  backward->footer(kExamples);
  struct Options {
    ProblemOptions problem;
    std::string device = "emulator", out;
  };
  const auto options = std::make_shared<Options>();
  options->problem.add_to(*backward);
  backward
      ->add_option("--device", options->device, "emulator, or cuda:N for a measured run beside it [emulator]")
      ->type_name("WORD");
  backward->add_option("--out", options->out, "What is written: *.svg, *.json (Perfetto) or *.txt")
      ->type_name("FILE")
      ->required();
  backward->callback(
      [=] { *chosen = [=] { return run_trace(options->problem, options->device, options->out); }; });
}

}  // namespace flashback::program
