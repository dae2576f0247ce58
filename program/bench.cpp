// `flashback bench`: how fast things are, by suite.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/emulator.h"
#include "program/arguments.h"
#include "program/progress.h"
#include "program/run_report.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

enum class Suite { kEmulator };

std::string_view name(Suite) {
  return "emulator";
}

Json json_of(const bench::EmulatorSpeed& speed) {
  return {{"suite", "emulator"},
          {"arch", name(Arch::kSm100)},
          {"entries", speed.entries},
          {"shape", to_json(speed.problem.shape)},
          {"threads", 1},
          {"cpu", speed.cpu},
          {"avx512", speed.avx512},
          {"tiles", speed.tiles},
          {"warp_instructions", speed.warp_instructions},
          {"cpu_seconds", speed.cpu_seconds},
          {"wall_seconds", speed.wall_seconds},
          {"median_cpu_seconds", speed.median(speed.cpu_seconds)},
          {"tiles_per_s_core", speed.tiles_per_s_core()},
          {"warp_instructions_per_s_core", speed.warp_instructions_per_s_core()}};
}

std::string text_of(const bench::EmulatorSpeed& speed) {
  return fmt::format(
      "emulator, functional, exact matrix arithmetic, one core of {} ({})\n"
      "  backward  {}\n"
      "  run       {} tiles of 128 x 128 x 64, {} warp instructions\n"
      "  time      median of {} runs {:.4g} s of CPU time, from {:.4g} to {:.4g} s ({:.4g} s of wall time)\n"
      "  speed     {:.0f} tiles/s, {:.3g} warp instructions/s\n",
      speed.cpu, speed.avx512 ? "AVX-512" : "AVX2", to_text(speed.problem), speed.tiles,
      speed.warp_instructions, speed.cpu_seconds.size(), speed.median(speed.cpu_seconds),
      speed.cpu_seconds.front(), speed.cpu_seconds.back(), speed.median(speed.wall_seconds),
      speed.tiles_per_s_core(), speed.warp_instructions_per_s_core());
}

ExitCode run_bench(const std::string& suite, const std::string& runs_text, bool json) {
  parse_choice("--suite", suite, {Suite::kEmulator});
  const int runs = int(parse_whole("--runs", runs_text, 1, 1000));
  Progress progress(std::size_t(runs) + 1);
  int run = 0;
  const bench::EmulatorSpeed speed = bench::measure_emulator(runs, [&] {
    progress.step(run == 0 ? "warming up" : "timed run");
    ++run;
  });
  progress.finish();
  if (json) {
    fmt::print("{}\n", json_of(speed).dump(2));
  } else {
    fmt::print("{}", text_of(speed));
  }
  return kRight;
}

}  // namespace

void add_bench(CLI::App& flashback, Action* chosen) {
  struct Options {
    std::string suite = "emulator", runs = "5";
    bool json = false;
  };
  CLI::App* bench = flashback.add_subcommand("bench", "Measures speed");
  bench->footer(
      "Examples:\n  flashback bench --suite emulator\n  flashback bench --suite emulator --runs 9 --json");
  const auto options = std::make_shared<Options>();
  bench->add_option("--suite", options->suite, "emulator [emulator]")->type_name("WORD");
  bench->add_option("--runs", options->runs, "Timed runs, of which the median counts [5]")->type_name("N");
  bench->add_flag("--json", options->json, "Prints JSON");
  bench->callback([=] { *chosen = [=] { return run_bench(options->suite, options->runs, options->json); }; });
}

}  // namespace flashback::program
