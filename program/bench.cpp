// `flashback bench`: how fast things are, by suite.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "bench/clocks/pass.h"
#include "bench/emulator.h"
#include "bench/micro/micro.h"
#include "program/arguments.h"
#include "program/bench_suites.h"
#include "program/progress.h"
#include "program/run_report.h"
#include "program/subcommand.h"
#include "program/suite_report.h"

namespace flashback::program {
namespace {

using Json = nlohmann::ordered_json;

using bench::Suite;

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
          {"warp_instructions_per_s_core", speed.warp_instructions_per_s_core()},
          {"checked_cpu_seconds", speed.checked_cpu_seconds},
          {"median_checked_cpu_seconds", speed.median(speed.checked_cpu_seconds)},
          {"checked_ratio", speed.checked_ratio()},
          {"peak_bytes", speed.peak_bytes}};
}

std::string text_of(const bench::EmulatorSpeed& speed) {
  return fmt::format(
      "emulator, functional, exact matrix arithmetic, one core of {} ({})\n"
      "  backward  {}\n"
      "  run       {} tiles of 128 x 128 x 64, {} warp instructions\n"
      "  time      median of {} runs {:.4g} s of CPU time, from {:.4g} to {:.4g} s ({:.4g} s of wall time)\n"
      "  speed     {:.0f} tiles/s, {:.3g} warp instructions/s\n"
      "  checked   median {:.4g} s of CPU time, {:.2f} times as long; the process took {} MiB at most\n",
      speed.cpu, speed.avx512 ? "AVX-512" : "AVX2", to_text(speed.problem), speed.tiles,
      speed.warp_instructions, speed.cpu_seconds.size(), speed.median(speed.cpu_seconds),
      speed.cpu_seconds.front(), speed.cpu_seconds.back(), speed.median(speed.wall_seconds),
      speed.tiles_per_s_core(), speed.warp_instructions_per_s_core(), speed.median(speed.checked_cpu_seconds),
      speed.checked_ratio(), speed.peak_bytes >> 20);
}

struct Options {
  std::string suite = "emulator", runs = "5", device = "emulator";
  std::optional<std::string> arch;
  bool json = false, nominal = false;
  PassSuiteOptions passes;  // but for suite, device and json
};

ExitCode run_emulator(const Options& options) {
  const int runs = int(parse_whole("--runs", options.runs, 1, 1000));
  Progress progress(std::size_t(runs) + 1);
  int run = 0;
  const bench::EmulatorSpeed speed = bench::measure_emulator(runs, [&] {
    progress.step(run == 0 ? "warming up" : "timed run");
    ++run;
  });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", json_of(speed).dump(2));
  } else {
    fmt::print("{}", text_of(speed));
  }
  return kRight;
}

ExitCode run_predicted(Suite suite, const Options& options) {
  if (options.device != "emulator") {
    refuse(fmt::format("--device is {}; the suite {} is predicted on the emulator, and emulator is accepted",
                       options.device, name(suite)));
  }
  if (options.arch && parse_choice("--arch", *options.arch, {Arch::kSm100, Arch::kSm90}) == Arch::kSm90) {
    if (suite == Suite::kAblation) {
      refuse(
          "--suite is ablation and --arch is sm90, whose kernel has no variants: an ablation compares "
          "variants; sm100 "
          "is accepted");
    }
    refuse(fmt::format(
        "--suite is {} and --arch is sm90; its table compares variants of sm100, which is accepted",
        name(suite)));
  }
  const auto began = [](const std::string&) {};
  const bench::SuiteResult result =
      suite == Suite::kHeadline   ? bench::predict_headline(!options.nominal, began)
      : suite == Suite::kAblation ? bench::predict_ablation(!options.nominal, began)
                                  : bench::predict_sweep(!options.nominal, began);
  if (options.json) {
    fmt::print("{}\n", to_json(suite, result).dump(2));
  } else {
    fmt::print("{}", to_text(suite, result));
  }
  return kRight;
}

ExitCode run_sensitivity(const Options& options) {
  const bench::Sensitivity found = bench::predict_sensitivity([](const std::string&) {});
  if (options.json) {
    const auto pairs_of = [](const std::vector<bench::Pair>& pairs) {
      Json rows = Json::array();
      for (const bench::Pair& pair : pairs)
        rows.push_back({{"what", pair.what}, {"baseline", pair.baseline}, {"result", pair.result}});
      return rows;
    };
    Json json = {{"suite", "sensitivity"},
                 {"arch", "sm100"},
                 {"word", "predicted"},
                 {"tile_cycles", pairs_of(found.cycles)},
                 {"work_cycles", pairs_of(found.work)}};
    for (const auto& [what, baseline, result, beyond] : found.path) {
      json["path_cycles"].push_back(
          {{"what", what}, {"baseline", baseline}, {"result", result}, {"result_no_special", beyond}});
    }
    for (const auto& [known, ratio] : found.widths)
      json["ratio_if_known"].push_back({{"known", known}, {"low", ratio.low}, {"high", ratio.high}});
    json["head_dim_128_tile"] = {{"published", bench::kPublishedCheckCycles},
                                 {"one_port", interval_json(found.check_one_port)},
                                 {"two_ports", interval_json(found.check_two_ports)}};
    fmt::print("{}\n", json.dump(2));
    return kRight;
  }
  const auto print = [](const char* title, const std::vector<bench::Pair>& pairs) {
    fmt::print("{}\n\n{:<42} {:>11} {:>11} {:>7}\n", title, "", "aliased/cta", "split/warp", "ratio");
    for (const bench::Pair& pair : pairs) {
      fmt::print("{:<42} {:>11.0f} {:>11.0f} {:>7.3f}\n", pair.what, pair.baseline, pair.result,
                 pair.result > 0 ? pair.baseline / pair.result : 0);
    }
    fmt::print("\n");
  };
  print("cycles of a tile, dense, predicted for a B200, one thing changed at a time", found.cycles);
  fmt::print(
      "cycles of a tile on its critical path, nominal, and of the result were special functions free\n\n"
      "{:<42} {:>11} {:>11} {:>11}\n",
      "", "aliased/cta", "split/warp", "no special");
  for (const auto& [what, baseline, result, beyond] : found.path)
    fmt::print("{:<42} {:>11.0f} {:>11.0f} {:>11.0f}\n", what, baseline, result, beyond);
  fmt::print("\n");
  print("cycles of a tile for which a unit works, nominal", found.work);
  fmt::print("10 % to 90 % of the ratio of tile cycles, were one more constant known\n\n");
  for (const auto& [known, ratio] : found.widths)
    fmt::print("{:<42} {:.3f} - {:.3f}, {:.3f} wide\n", known, ratio.low, ratio.high, ratio.high - ratio.low);
  fmt::print(
      "\ncheck: cycles of a dense tile at head dimension 128, published {:.0f}, nominal and 10 % to 90 %\n\n",
      bench::kPublishedCheckCycles);
  for (const auto& [ports, tile] :
       {std::pair{"one port", found.check_one_port}, std::pair{"two ports", found.check_two_ports}})
    fmt::print("{:<42} {:>6.0f}, {:.0f} - {:.0f}\n", ports, tile.nominal, tile.low, tile.high);
  return kRight;
}

// What a GPU is measured for: constants of the timing model, and on sm90 the main kernel's own cycles.
ExitCode run_micro(const Options& options) {
  if (!options.device.starts_with("cuda:")) {
    refuse(fmt::format("--device is {}; the suite micro measures a GPU, and cuda:N is accepted",
                       options.device));
  }
  std::unique_ptr<Workbench> workbench;
  const int ordinal = int(parse_whole("the number in --device cuda:N", options.device.substr(5), 0, 1023));
  if (const Status s = open_cuda(ordinal, &workbench); !s.ok()) refuse(s.sentence());
  std::vector<micro::Measured> measured;
  require(micro::measure(
      *workbench, 1, [](const std::string&) {}, &measured));
  if (workbench->arch() == Arch::kSm90) {
    for (const Mask mask : {Mask::kDense, Mask::kCausal}) {
      Problem problem;
      problem.mask = mask;
      problem.shape = {.heads = 33, .kv_heads = 33, .seqlen_q = 4096, .seqlen_k = 4096};
      double cycles = 0;
      require(clocks::cycles_per_tile(ordinal, problem, &cycles));
      measured.push_back({fmt::format("backward {}", name(mask)),
                          "the main kernel, 4096 rows of 33 heads: a tile of 128 x 128, by the clock inside",
                          "cycles", cycles, ""});
    }
  }
  Json rows = Json::array();
  for (const micro::Measured& m : measured) {
    rows.push_back({{"probe", m.name},
                    {"what", m.what},
                    {"value", m.value},
                    {"unit", m.unit},
                    {"constant", m.constant}});
    if (!options.json) {
      fmt::print("{:<28} {:>10.4g} {:<14} {}{}\n", m.name, m.value, m.unit, m.what,
                 m.constant.empty() ? "" : " -> " + m.constant);
    }
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"suite", "micro"},
                            {"device", options.device},
                            {"arch", name(workbench->arch())},
                            {"word", "measured"},
                            {"rows", rows}}
                           .dump(2));
  }
  return kRight;
}

ExitCode run_bench(const Options& options) {
  const Suite suite =
      parse_choice("--suite", options.suite,
                   {Suite::kEmulator, Suite::kAblation, Suite::kHeadline, Suite::kSweep, Suite::kSensitivity,
                    Suite::kMicro, Suite::kBackward, Suite::kForward, Suite::kHost});
  const bool on_gpu = options.device != "emulator";
  if (suite == Suite::kHost)
    return bench_host(on_gpu ? std::optional(options.device) : std::nullopt, options.json);
  const bool of_passes = suite == Suite::kBackward || suite == Suite::kForward,
             published = suite == Suite::kHeadline || suite == Suite::kSweep;
  if (of_passes || (on_gpu && published)) {
    PassSuiteOptions passes = options.passes;
    passes.suite = suite;
    passes.json = options.json;
    passes.device = options.device;
    return bench_passes(passes);
  }
  if (suite == Suite::kMicro) return run_micro(options);
  if (suite == Suite::kEmulator) return run_emulator(options);
  return suite == Suite::kSensitivity ? run_sensitivity(options) : run_predicted(suite, options);
}

}  // namespace

void add_bench(CLI::App& flashback, Action* chosen) {
  CLI::App* bench = flashback.add_subcommand("bench", "Measures or predicts speed");
  bench->footer(
      "Examples:\n"
      "  flashback bench --suite emulator --runs 9 --json      how fast the emulator runs here, measured\n"
      "  flashback bench --suite headline                      the published table, predicted, with "
      "intervals\n"
      "  flashback bench --suite ablation --nominal            each change alone, nominal constants only\n"
      "  flashback bench --suite sweep --json                  lengths 512 to 32768\n"
      "  flashback bench --suite headline --device cuda:0 --peer fa3.so     its rows, measured, ours and a "
      "peer\n"
      "  flashback bench --suite micro --device cuda:0         constants of the timing model, measured\n"
      "  flashback bench --suite backward --device cuda:0 --peer fa3.so --cells causal,gqa,1k,32k\n"
      "  flashback bench --suite forward --device cuda:0 --peer fa3.so --cells 1k,4k,16k\n"
      "  flashback bench --suite host                          what a call costs the processor");
  const auto options = std::make_shared<Options>();
  bench
      ->add_option(
          "--suite", options->suite,
          "emulator, ablation, headline, sweep, sensitivity, micro, backward, forward or host [emulator]")
      ->type_name("WORD");
  bench
      ->add_option(
          "--device", options->device,
          "emulator, or cuda:N for suites headline, sweep, micro, backward, forward and host [emulator]")
      ->type_name("WORD");
  bench->add_option("--arch", options->arch, "sm100 [sm100]")->type_name("WORD");
  bench->add_option("--runs", options->runs, "Timed runs of suite emulator, of which the median counts [5]")
      ->type_name("N");
  bench
      ->add_option("--peer", options->passes.peers,
                   "backward, forward: another implementation (bench/peer.h); any number of them")
      ->type_name("FILE");
  bench
      ->add_option("--protocol", options->passes.protocol,
                   "backward, forward: short, sustained or both [both]")
      ->type_name("WORD");
  bench
      ->add_option("--cells", options->passes.cells,
                   "backward, forward: of dense, causal, mha, gqa and lengths 1k to 32k [all]")
      ->type_name("LIST");
  bench->add_flag("--nominal", options->nominal, "Nominal constants only, no interval");
  bench->add_flag("--json", options->json, "Prints JSON");
  bench->callback([=] { *chosen = [=] { return run_bench(*options); }; });
}

}  // namespace flashback::program
