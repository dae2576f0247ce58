#include "program/pass_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/median.h"

namespace flashback::program {
namespace {

using bench::CellResult;
using bench::ContenderResult;
using bench::Timing;
using Json = nlohmann::ordered_json;

double tflops(const CellResult& cell, const Timing& timing) {
  return bench::flop(cell.cell) / timing.median_ms() * 1e-9;
}

Json json_of(const Verdict& verdict) {
  return {{"max_abs", verdict.max_abs},
          {"rel", verdict.rel},
          {"limit", verdict.limit},
          {"block_ratio", verdict.block_ratio},
          {"ok", verdict.ok}};
}

Json json_of(const bench::Distance& distance) {
  return {{"rel", distance.tensor}, {"worst_block_rel", distance.block}};
}

template <typename Value>
Json json_of(const bench::OfOutputs<Value>& of_outputs) {
  Json json;
  for (const auto& [name, value] : of_outputs) json[std::string(name)] = json_of(value);
  return json;
}

Json json_of(const bench::Check& check) {
  Json json;
  if (check.slice) json["last_head_group_against_fp64"] = json_of(*check.slice);
  json["against_first_contender"] = json_of(check.from_first);
  json["ok"] = check.wrong.empty();
  if (!check.wrong.empty()) json["sentence"] = check.wrong;
  return json;
}

Json json_of(const CellResult& cell, std::string_view protocol, const Timing& timing) {
  const std::vector<double> times = timing.all();
  std::vector<double> of_rounds;
  for (const std::vector<double>& round : timing.rounds) of_rounds.push_back(bench::median(round));
  Json json = {{"protocol", protocol},
               {"ms", timing.median_ms()},
               {"ms_of_rounds", of_rounds},
               {"ms_least", *std::min_element(times.begin(), times.end())},
               {"ms_most", *std::max_element(times.begin(), times.end())},
               {"calls", times.size()},
               {"tflops", tflops(cell, timing)}};
  if (!timing.readings.empty()) {
    const GpuReading reading = bench::summary(timing.readings);
    json["gpu"] = {{"watts", reading.watts},
                   {"sm_mhz", reading.sm_mhz},
                   {"memory_mhz", reading.memory_mhz},
                   {"celsius", reading.celsius},
                   {"clock_reasons", fmt::format("{:#x}", reading.clock_reasons)},
                   {"readings", timing.readings.size()}};
  }
  return json;
}

Json json_of(const PassReport& report, const CellResult& cell) {
  const Shape& s = cell.cell.shape;
  Json json = {{"name", bench::name(cell.cell)},
               {"mask", name(cell.cell.mask)},
               {"dtype", name(cell.cell.dtype)},
               {"deterministic", cell.cell.deterministic},
               {"packed", cell.cell.packed},
               {"batch", s.batch},
               {"heads", s.heads},
               {"kv_heads", s.kv_heads},
               {"seqlen", s.seqlen_q},
               {"head_dim", s.head_dim},
               {"gflop", bench::flop(cell.cell) * 1e-9}};
  for (const ContenderResult& contender : cell.contenders) {
    Json of_contender = {{"name", contender.name}, {"check", json_of(contender.check)}};
    for (std::size_t i = 0; i < contender.timings.size(); ++i) {
      of_contender["timings"].push_back(json_of(cell, report.protocols[i].name, contender.timings[i]));
    }
    json["contenders"].push_back(of_contender);
  }
  return json;
}

Json json_of(const bench::Protocol& protocol) {
  return {{"name", protocol.name},         {"rounds", protocol.rounds},
          {"idle_ms", protocol.idle_ms},   {"warm_calls", protocol.warm_calls},
          {"warm_ms", protocol.warm_ms},   {"timed_calls", protocol.timed_calls},
          {"timed_ms", protocol.timed_ms}, {"turns", protocol.turns}};
}

// How much faster the first contender is than another, over the cells that were timed.
struct Ratios {
  double mean = 0, least = 0;  // geometric
  std::string worst;
};
Ratios ratios_of(const PassReport& report, std::size_t protocol, std::size_t contender) {
  double logs = 0;
  int count = 0;
  Ratios ratios;
  for (const CellResult& cell : report.cells) {
    if (!cell.wrong().empty()) continue;
    const double ratio = cell.contenders[contender].timings[protocol].median_ms() /
                         cell.contenders[0].timings[protocol].median_ms();
    logs += std::log(ratio);
    if (count++ == 0 || ratio < ratios.least) {
      ratios.least = ratio;
      ratios.worst = bench::name(cell.cell);
    }
  }
  ratios.mean = count ? std::exp(logs / count) : 0;
  return ratios;
}

std::string line_of(const CellResult& cell, std::size_t protocol) {
  std::string line = fmt::format("{:36}", bench::name(cell.cell));
  if (!cell.wrong().empty()) return line + "  not timed\n";
  const double ours = cell.contenders[0].timings[protocol].median_ms();
  for (const ContenderResult& contender : cell.contenders) {
    const Timing& timing = contender.timings[protocol];
    line += fmt::format("{:12.1f}", tflops(cell, timing));
    if (&contender != &cell.contenders[0]) line += fmt::format(" {:6.3f}", timing.median_ms() / ours);
  }
  return line + "\n";
}

}  // namespace

bool PassReport::ok() const {
  return std::all_of(cells.begin(), cells.end(), [](const CellResult& cell) { return cell.wrong().empty(); });
}

Json to_json(const PassReport& report) {
  Json json = {{"suite", report.suite}};
  json.update(to_json(report.provenance));
  if (report.power_limit_watts) json["power_limit_watts"] = *report.power_limit_watts;
  for (const bench::Protocol& protocol : report.protocols) json["protocols"].push_back(json_of(protocol));
  for (const CellResult& cell : report.cells) json["cells"].push_back(json_of(report, cell));
  json["ok"] = report.ok();
  return json;
}

std::string to_text(const PassReport& report) {
  const Provenance& p = report.provenance;
  std::string text =
      fmt::format("{}, measured, {}, driver {}, commit {}\n", report.suite, p.card, p.driver, p.commit);
  for (std::size_t protocol = 0; protocol < report.protocols.size(); ++protocol) {
    text += fmt::format("\n{}: TFLOP/s, and how many times as long as {} others take\n{:36}",
                        report.protocols[protocol].name, report.cells.at(0).contenders[0].name, "");
    const std::vector<ContenderResult>& contenders = report.cells[0].contenders;
    for (std::size_t i = 0; i < contenders.size(); ++i)
      text += fmt::format("{:>12}{:7}", contenders[i].name, "").substr(0, i == 0 ? 12 : 19);
    text += "\n";
    for (const CellResult& cell : report.cells) text += line_of(cell, protocol);
    for (std::size_t i = 1; i < contenders.size(); ++i) {
      const Ratios ratios = ratios_of(report, protocol, i);
      text += fmt::format("{} / {}: geometric mean {:.3f}, least {:.3f} ({})\n", contenders[i].name,
                          contenders[0].name, ratios.mean, ratios.least, ratios.worst);
    }
  }
  for (const CellResult& cell : report.cells) {
    if (const std::string wrong = cell.wrong(); !wrong.empty()) text += fmt::format("\nwrong: {}\n", wrong);
  }
  return text;
}

}  // namespace flashback::program
