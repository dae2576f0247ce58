// `flashback trace backward`: one CTA of the main kernel over time, as predicted.
#include <fmt/format.h>

#include <fstream>

#include "attention/launch.h"
#include "bench/recorded.h"
#include "emulator/trace/trace.h"
#include "program/arguments.h"
#include "program/judged_run.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

namespace trace = emulator::trace;

constexpr std::int64_t kTile = 128, kTiles = 24;  // enough for a steady state

constexpr const char* kExamples = R"(Examples:
  flashback trace backward --out tile.svg
  flashback trace backward --variants aliased/cta,split/warp --out both.svg    side by side, on one scale
  flashback trace backward --causal --out tile.json                            for Perfetto or chrome://tracing
  flashback trace backward --arch sm90 --out tile.txt

The run is predicted: the emulator executes the kernel, and its timing model says when everything happens on
an SM that runs this CTA.)";

enum class Format { kSvg, kJson, kText };

Format format_of(const std::string& out) {
  if (out.ends_with(".svg")) return Format::kSvg;
  if (out.ends_with(".json")) return Format::kJson;
  if (out.ends_with(".txt")) return Format::kText;
  refuse(fmt::format("--out is {}; it must end in .svg, .json or .txt, which says what is written", out));
}

trace::Run run_of(Arch arch, const Problem& problem, const Variant& variant, int tiles) {
  const Problem chosen = in_variant(problem, variant);
  Plan plan;
  require(make_plan(arch, chosen, &plan));
  const bench::Recordings recordings = bench::record(arch, chosen, {&tiles, 1});
  trace::Run run;
  run.title = plan.kernel->main.name;
  run.outcome =
      emulator::timing::replay(recordings.begin()->second, emulator::timing::nominal(arch), &run.timeline);
  if (!run.outcome.ok()) throw Failure(kInternal, "the replay stops: " + run.outcome.error);
  return run;
}

ExitCode run_trace(const ProblemOptions& options, const std::string& out) {
  const Format format = format_of(out);
  const PartialShape given = options.shape();
  Problem problem = options.problem();
  if (!given.seqlen_q) problem.shape.seqlen_q = problem.shape.seqlen_k = kTile * kTiles;
  const Arch arch = options.arch().value_or(Arch::kSm100);
  const auto tiles = static_cast<int>((problem.shape.seqlen_q + kTile - 1) / kTile);

  std::vector<trace::Run> runs;
  for (const Variant& variant : options.variants()) runs.push_back(run_of(arch, problem, variant, tiles));
  std::ofstream file(out, std::ios::binary);
  file << (format == Format::kSvg    ? trace::svg(runs)
           : format == Format::kJson ? trace::chrome_json(runs)
                                     : trace::text(runs));
  file.close();
  if (!file) refuse(fmt::format("--out is {}; it cannot be written", out));
  for (const trace::Run& run : runs) {
    const trace::SteadyTile tile = trace::steady_tile(run);
    fmt::print("{}: {:.0f} cycles for {} tiles", run.title, run.outcome.cycles, tiles);
    if (tile.cycles > 0) fmt::print(", {:.0f} a tile in the steady state", tile.cycles);
    fmt::print(" (predicted)\n");
  }
  return kRight;
}

}  // namespace

void add_trace(CLI::App& flashback, Action* chosen) {
  CLI::App* trace = flashback.add_subcommand("trace", "Draws the timeline of a kernel, as predicted");
  trace->require_subcommand(1);
  trace->footer(kExamples);
  CLI::App* backward = trace->add_subcommand("backward", "The main kernel of the backward pass");
  backward->footer(kExamples);
  struct Options {
    ProblemOptions problem;
    std::string out;
  };
  const auto options = std::make_shared<Options>();
  options->problem.add_to(*backward);
  backward->add_option("--out", options->out, "What is written: *.svg, *.json (Perfetto) or *.txt")
      ->type_name("FILE")
      ->required();
  backward->callback([=] { *chosen = [=] { return run_trace(options->problem, options->out); }; });
}

}  // namespace flashback::program
