// `flashback bench`: how fast things are, by suite.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/emulator.h"
#include "program/arguments.h"
#include "program/bench_suites.h"
#include "program/progress.h"
#include "program/run_report.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

enum class Suite { kEmulator, kBackward, kHost };

std::string_view name(Suite suite) {
  return suite == Suite::kEmulator ? "emulator" : suite == Suite::kBackward ? "backward" : "host";
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

ExitCode bench_emulator(const std::string& runs_text, bool json) {
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
    BackwardSuiteOptions backward;
  };
  CLI::App* bench = flashback.add_subcommand("bench", "Measures speed");
  bench->footer(
      "Examples:\n"
      "  flashback bench --suite emulator --runs 9 --json\n"
      "  flashback bench --suite backward --device cuda:0 --peer fa3.so --json\n"
      "  flashback bench --suite backward --device cuda:0 --protocol short --cells causal,gqa,1k,32k\n"
      "  flashback bench --suite host");
  const auto options = std::make_shared<Options>();
  BackwardSuiteOptions& backward = options->backward;
  const auto add = [&](const char* name, const char* type, auto& value, const char* meaning) {
    bench->add_option(name, value, meaning)->type_name(type);
  };
  add("--suite", "WORD", options->suite, "emulator, backward or host [emulator]");
  bench->add_flag("--json", backward.json, "Prints JSON");
  add("--runs", "N", options->runs, "emulator: timed runs, of which the median counts [5]");
  add("--device", "WORD", backward.device, "backward, host: cuda:N");
  add("--peer", "FILE", backward.peers,
      "backward: another implementation (bench/peer.h); any number of them");
  add("--protocol", "WORD", backward.protocol, "backward: short, sustained or both [both]");
  add("--cells", "LIST", backward.cells, "backward: of dense, causal, mha, gqa and lengths 1k to 32k [all]");
  bench->callback([=] {
    *chosen = [=] {
      switch (parse_choice("--suite", options->suite, {Suite::kEmulator, Suite::kBackward, Suite::kHost})) {
        case Suite::kBackward:
          return bench_backward(options->backward);
        case Suite::kHost:
          return bench_host(options->backward.device, options->backward.json);
        case Suite::kEmulator:
          break;
      }
      return bench_emulator(options->runs, options->backward.json);
    };
  });
}

}  // namespace flashback::program
