#include "program/suite_report.h"

#include <fmt/format.h>

namespace flashback::program {
namespace {

using bench::Interval;
using bench::Row;
using bench::Suite;
using Json = nlohmann::ordered_json;

constexpr double kPeak = 2250;  // dense TFLOP/s of a B200 in 16 bit, vendor

// Of a sweep, as published.
struct Half {
  const char* name;
  bool deterministic;
  double geometric_mean, worst;
};
constexpr Half kHalves[] = {{"plain", false, 1.129, 1.023}, {"deterministic", true, 1.050, 0.995}};

bool within(double published, const Interval& interval) {
  return interval.low <= published && published <= interval.high;
}

Json json_of(const Row& row) {
  Json json = {{"case", row.name},         {"variant", row.variant},         {"batch", row.shape.batch},
               {"heads", row.shape.heads}, {"kv_heads", row.shape.kv_heads}, {"seqlen", row.seqlen}};
  if (!row.no_kernel.empty()) {
    json["word"] = "no kernel";
    json["why"] = row.no_kernel;
    return json;
  }
  json["word"] = "predicted";
  json["tflops_baseline"] = row.tflops_baseline.nominal;
  json["tflops"] = row.tflops.nominal;
  json["share_of_peak"] = row.tflops.nominal / kPeak;
  json["ratio"] = row.ratio.nominal;
  json["ratio_lo"] = row.ratio.low;
  json["ratio_hi"] = row.ratio.high;
  json["ratio_least"] = row.ratio.least;
  json["ratio_most"] = row.ratio.most;
  if (row.has_interval())
    json["ratio_by_ports"] = {{"one", interval_json(row.ratio_one_port)},
                              {"two", interval_json(row.ratio_two_ports)}};
  if (row.has_published()) {
    if (row.published != 0) {
      json["published"] = {{"tflops_baseline", row.published_baseline},
                           {"tflops", row.published},
                           {"ratio", row.published_ratio_low}};
    } else {
      json["published"] = {{"ratio_low", row.published_ratio_low}, {"ratio_high", row.published_ratio_high}};
    }
    if (row.has_interval()) json["inside"] = row.inside();
  }
  json["tile_shorter"] = interval_json(row.tile_shorter);
  if (row.published_shorter != 0) {
    json["published"]["tile_shorter"] = row.published_shorter;
    if (row.has_interval()) json["tile_inside"] = within(row.published_shorter, row.tile_shorter);
  }
  json["tile_cycles"] = interval_json(row.tile_cycles);
  json["tile_cycles_baseline"] = interval_json(row.tile_baseline);
  json["tflops_interval"] = interval_json(row.tflops);
  json["tflops_baseline_interval"] = interval_json(row.tflops_baseline);
  return json;
}

std::string published_text(const Row& row) {
  if (!row.has_published()) return "";
  if (row.published != 0) {
    return fmt::format("{:.0f} -> {:.0f}, {:.3f}", row.published_baseline, row.published,
                       row.published_ratio_low);
  }
  if (row.published_ratio_low == row.published_ratio_high)
    return fmt::format("{:.2f}", row.published_ratio_low);
  return fmt::format("{:.2f} to {:.2f}", row.published_ratio_low, row.published_ratio_high);
}

}  // namespace

Json interval_json(const Interval& interval) {
  return {{"nominal", interval.nominal},
          {"low", interval.low},
          {"high", interval.high},
          {"least", interval.least},
          {"most", interval.most}};
}

Json to_json(Suite suite, const bench::SuiteResult& result) {
  Json json = {{"suite", name(suite)},
               {"device", "emulator"},
               {"arch", "sm100"},
               {"word", "predicted"},
               {"settings", result.settings}};
  if (suite == Suite::kSweep) {
    for (const Half& half : kHalves) {
      const bench::Summary all = bench::summary(result.rows, half.deterministic);
      Json of_half = {{"rows", all.rows},
                      {"geometric_mean", interval_json(all.geometric_mean)},
                      {"worst", interval_json(all.worst)},
                      {"worst_case", all.worst_case},
                      {"published", {{"geometric_mean", half.geometric_mean}, {"worst", half.worst}}}};
      if (result.settings > 1) {
        of_half["inside"] = {{"geometric_mean", within(half.geometric_mean, all.geometric_mean)},
                             {"worst", within(half.worst, all.worst)}};
      }
      for (const std::int64_t seqlen : bench::kSweepLengths) {
        of_half["by_seqlen"][std::to_string(seqlen)] =
            bench::summary(result.rows, half.deterministic, seqlen).geometric_mean.nominal;
      }
      json[half.name] = of_half;
    }
  }
  json["rows"] = Json::array();
  for (const Row& row : result.rows) json["rows"].push_back(json_of(row));
  return json;
}

std::string to_text(Suite suite, const bench::SuiteResult& result) {
  std::string out = fmt::format(
      "{} of the backward pass, predicted for a B200 (timing model; nothing is measured)\n"
      "baseline aliased/cta; TFLOP/s count 2.5 times the forward; share of {:.0f}; {}\n\n"
      "{:<28} {:<13} {:>8} {:>8} {:>6} {:>7} {:>15} {:>15}  {:<22}\n",
      name(suite), kPeak,
      result.settings > 1
          ? fmt::format("{} settings of the open constants, and by the ports of shared memory",
                        result.settings)
          : "all constants nominal",
      "case", "variant", "baseline", "TFLOP/s", "share", "ratio", "10 % to 90 %", "least to most",
      "published");
  for (const Row& row : result.rows) {
    if (!row.no_kernel.empty()) {
      out += fmt::format("{:<28} {:<13} no kernel: {}\n", row.name, row.variant, row.no_kernel);
      continue;
    }
    const auto range = [&](double from, double to) {
      return result.settings > 1 ? fmt::format("{:.3f} - {:.3f}", from, to) : "";
    };
    out +=
        fmt::format("{:<28} {:<13} {:>8.0f} {:>8.0f} {:>5.1f}% {:>7.3f} {:>15} {:>15}  {:<22}{:<7}", row.name,
                    row.variant, row.tflops_baseline.nominal, row.tflops.nominal,
                    100 * row.tflops.nominal / kPeak, row.ratio.nominal, range(row.ratio.low, row.ratio.high),
                    range(row.ratio.least, row.ratio.most), published_text(row),
                    !row.has_published() || !row.has_interval() ? ""
                    : row.inside()                              ? "inside"
                                                                : "outside");
    if (row.has_interval()) {
      const Interval &one = row.ratio_one_port, &two = row.ratio_two_ports;
      out += fmt::format("  one {:.3f} - {:.3f}, two {:.3f} - {:.3f}", one.low, one.high, two.low, two.high);
    }
    out += "\n";
    if (row.published_shorter != 0) {
      out += fmt::format(
          "{:<41} tile {:.1f} % shorter{} (published {:.0f} %)\n", "", 100 * row.tile_shorter.nominal,
          result.settings > 1
              ? fmt::format(", {:.1f} - {:.1f} %", 100 * row.tile_shorter.low, 100 * row.tile_shorter.high)
              : "",
          100 * row.published_shorter);
    }
  }
  if (suite == Suite::kSweep) {
    for (const Half& half : kHalves) {
      const bench::Summary all = bench::summary(result.rows, half.deterministic);
      const auto text_of = [&](const Interval& interval, double published) {
        std::string text = fmt::format("{:.3f}", interval.nominal);
        if (result.settings > 1) {
          text += fmt::format(", {:.3f} - {:.3f} (published {:.3f}, {})", interval.low, interval.high,
                              published, within(published, interval) ? "inside" : "outside");
        } else {
          text += fmt::format(" (published {:.3f})", published);
        }
        return text;
      };
      out += fmt::format("\n{}: {} rows, geometric mean {}; worst {}, {}; means by length", half.name,
                         all.rows, text_of(all.geometric_mean, half.geometric_mean),
                         text_of(all.worst, half.worst), all.worst_case);
      for (const std::int64_t seqlen : bench::kSweepLengths) {
        out += fmt::format(" {:.3f}",
                           bench::summary(result.rows, half.deterministic, seqlen).geometric_mean.nominal);
      }
    }
    out += "\n";
  }
  return out;
}

}  // namespace flashback::program
