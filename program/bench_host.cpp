// `flashback bench --suite host`: what a call costs the processor.
#include <fmt/format.h>

#include "attention/problem.h"
#include "bench/driver_clock.h"
#include "bench/host.h"
#include "device/nvml.h"
#include "program/arguments.h"
#include "program/bench_suites.h"
#include "program/provenance.h"

namespace flashback::program {
namespace {

using bench::HostTime;
using Json = nlohmann::ordered_json;

struct Row {
  std::string driver;  // "none" or the device's name
  Arch arch;
  HostTime time;
};

constexpr int kCalls = 2000;

// `version` becomes that of the GPU's driver.
std::vector<Row> measure(const std::optional<int>& ordinal, std::string* version) {
  std::vector<Row> rows;
  for (const Arch arch : {Arch::kSm90, Arch::kSm100}) {
    const cuda::Driver nothing = bench::null_driver(arch == Arch::kSm90 ? 9 : 10);
    rows.push_back({"none", arch, bench::measure_host(nothing, 0, kCalls)});
  }
  if (ordinal) {
    const cuda::Driver* driver = nullptr;
    require(cuda::open_driver(&driver));
    CudaCard card;
    require(identify_cuda(*ordinal, &card));
    std::unique_ptr<GpuSensors> sensors;
    if (open_nvml(card.bus, &sensors).ok()) {
      require(sensors->driver_version(version));
    } else {
      *version = "unknown (no NVML)";
    }
    std::unique_ptr<Workbench> workbench;
    require(open_cuda(*ordinal, &workbench));
    rows.push_back({card.name, workbench->arch(), bench::measure_host(*driver, *ordinal, kCalls)});
  }
  return rows;
}

Json json_of(const Row& row) {
  const HostTime& t = row.time;
  return {{"driver", row.driver},
          {"arch", name(row.arch)},
          {"whole_us", t.whole_us},
          {"launch_and_encode_us", t.launch_and_encode_us},
          {"own_us", t.own_us},
          {"of_own_in_other_driver_functions_us", t.other_driver_us},
          {"driver_calls", t.driver_calls},
          {"calls", t.calls}};
}

std::string text_of(const Row& row) {
  const HostTime& t = row.time;
  return fmt::format("{:5}  {:24} {:8.2f} {:14.2f} {:6.2f} {:12.2f}\n", name(row.arch),
                     row.driver == "none" ? "none: returns at once" : row.driver, t.whole_us,
                     t.launch_and_encode_us, t.own_us, t.other_driver_us);
}

}  // namespace

ExitCode bench_host(const std::optional<std::string>& device, bool json) {
  std::string version = "none";
  const std::vector<Row> rows =
      measure(device ? std::optional(parse_cuda_device(*device, "host")) : std::nullopt, &version);
  if (json) {
    Json report = {{"suite", "host"}};
    Provenance provenance = here_and_now();
    provenance.card = rows.back().driver;
    provenance.driver = version;
    report.update(to_json(provenance));
    for (const Row& row : rows) report["rows"].push_back(json_of(row));
    fmt::print("{}\n", report.dump(1));
    return kRight;
  }
  fmt::print(
      "microseconds of a call of flashback_backward, median of {}\n{:5}  {:24} {:>8} {:>14} {:>6} {:>12}\n",
      kCalls, "arch", "driver", "whole", "launch+encode", "own", "context");
  for (const Row& row : rows) fmt::print("{}", text_of(row));
  return kRight;
}

}  // namespace flashback::program
