// `flashback bench --suite backward` and `forward`, and headline and sweep on a GPU: ours beside its peers.
#include <fmt/format.h>

#include <memory>

#include "attention/device_handle.h"
#include "bench/pass_suite.h"
#include "device/nvml.h"
#include "program/arguments.h"
#include "program/bench_suites.h"
#include "program/pass_report.h"
#include "program/progress.h"

namespace flashback::program {
namespace {

using bench::Contender;
using bench::Protocol;

std::vector<Protocol> parse_protocols(const std::string& text) {
  if (text == "both") return {bench::kShort, bench::kSustained};
  for (const Protocol& protocol : {bench::kShort, bench::kSustained}) {
    if (text == protocol.name) return {protocol};
  }
  refuse_word("--protocol", text, {bench::kShort.name, bench::kSustained.name, "both"});
}

// Where there is no NVML there are no readings; power and clocks are not what the suite is about.
std::unique_ptr<GpuSensors> open_sensors(const CudaCard& card, PassReport* report) {
  std::unique_ptr<GpuSensors> sensors;
  if (!open_nvml(card.bus, &sensors).ok()) {
    report->provenance.driver = "unknown (no NVML)";
    return nullptr;
  }
  double watts = 0;
  require(sensors->driver_version(&report->provenance.driver));
  require(sensors->power_limit(&watts));
  report->power_limit_watts = watts;
  return sensors;
}

struct CloseDevice {
  void operator()(flashback_device* device) const { flashback_device_close(device); }
};
using LibraryDevice = std::unique_ptr<flashback_device, CloseDevice>;

LibraryDevice open_library_device(int ordinal) {
  flashback_device* device = nullptr;
  flashback_message message;
  if (flashback_device_cuda(ordinal, &device, &message) != FLASHBACK_OK)
    throw Failure(kInternal, message.text);
  return LibraryDevice(device);
}

}  // namespace

int parse_cuda_device(const std::string& text, std::string_view suite) {
  if (text.starts_with("cuda:"))
    return int(parse_whole("the number in --device cuda:N", text.substr(5), 0, 1023));
  refuse(fmt::format(
      "--device is {}; the suite {} takes times of a GPU, so it must be cuda:N with a device number N",
      text.empty() ? "empty" : text, suite));
}

ExitCode bench_passes(const PassSuiteOptions& options) {
  const int ordinal = parse_cuda_device(options.device.value_or(""), bench::name(options.suite));
  const Direction direction =
      options.suite == bench::Suite::kForward ? Direction::kForward : Direction::kBackward;
  bench::PassSuite suite;
  suite.protocols = parse_protocols(options.protocol);
  suite.cells = options.suite == bench::Suite::kHeadline ? bench::headline_cells()
                : options.suite == bench::Suite::kSweep  ? bench::sweep_cells()
                                                         : bench::chosen_cells(options.cells, direction);

  const LibraryDevice device = open_library_device(ordinal);
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(bench::make_ours(device.get()));
  for (const std::string& file : options.peers)
    contenders.push_back(bench::open_peer(file, ordinal, direction));
  std::vector<Contender*> in_order;
  for (const auto& contender : contenders) in_order.push_back(contender.get());

  PassReport report{std::string(bench::name(options.suite)), here_and_now(), {}, suite.protocols, {}};
  CudaCard card;
  require(identify_cuda(ordinal, &card));
  report.provenance.card = card.name;
  const std::unique_ptr<GpuSensors> sensors = open_sensors(card, &report);
  Progress progress(suite.cells.size());
  report.cells = bench::measure_passes(*device->workbench, suite, in_order, sensors.get(),
                                       [&](const bench::Cell& cell) { progress.step(bench::name(cell)); });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", to_json(report).dump(1));
  } else {
    fmt::print("{}", to_text(report));
  }
  return report.ok() ? kRight : kWrong;
}

}  // namespace flashback::program
