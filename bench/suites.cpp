#include "bench/suites.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "attention/launch.h"
#include "emulator/timing/replay.h"
#include "emulator/trace/trace.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using emulator::timing::Costs;

constexpr Arch kArch = Arch::kSm100;
constexpr std::int64_t kTokens = 65536, kHeads = 32;

struct Variant {
  TensorMemory tensor_memory;
  Signal signal;
};
constexpr Variant kBaseline = {TensorMemory::kAliased, Signal::kCta};
constexpr Variant kResult = {TensorMemory::kSplit, Signal::kWarp};

std::string name_of(const Variant& v) {
  return fmt::format("{}/{}", name(v.tensor_memory), name(v.signal));
}

struct Case {
  std::string name;
  std::int64_t kv_heads = kHeads, seqlen = 0;
  Mask mask = Mask::kDense;
  Dtype dtype = Dtype::kBf16;
  bool deterministic = false;
  bool ragged = false;  // sequences of `seqlen` rows, half and a quarter of them in turn
};

// The rows of each sequence of a ragged case, else nothing.
std::vector<std::int64_t> sequences_of(const Case& c) {
  std::vector<std::int64_t> rows;
  if (!c.ragged) return rows;
  for (std::int64_t left = kTokens; left > 0; left -= rows.back())
    rows.push_back(std::min(left, c.seqlen >> rows.size() % 3));
  return rows;
}

Problem problem_of(const Case& c, const Variant& v) {
  Problem problem;
  problem.shape = {.batch = kTokens / c.seqlen,
                   .heads = kHeads,
                   .kv_heads = c.kv_heads,
                   .seqlen_q = c.seqlen,
                   .seqlen_k = c.seqlen};
  if (c.ragged) {
    constexpr Address kSomewhere = 256;  // no tensor is looked at
    problem.shape.batch = std::ssize(sequences_of(c));
    problem.shape.seqlen_q = problem.shape.seqlen_k = kTokens;
    problem.q_sequences.cu_seqlens = problem.k_sequences.cu_seqlens = kSomewhere;
  }
  problem.mask = c.mask;
  problem.dtype = c.dtype;
  problem.deterministic = c.deterministic;
  problem.tensor_memory = v.tensor_memory;
  problem.signal = v.signal;
  return problem;
}

// Empty when the library has the kernel.
std::string missing(const Case& c, const Variant& v) {
  Plan plan;
  const Status status = make_plan(kArch, problem_of(c, v), &plan);
  return status.ok() ? "" : status.sentence();
}

// A kernel as recorded, and how long its CTAs take under each setting.
struct Recorded {
  Recordings recordings;
  std::vector<CtaTimes> times;
};

// Recorded kernels, each made once.
class Shelf {
 public:
  Shelf(std::vector<Costs> settings, const std::function<void(const std::string&)>& began)
      : settings_(std::move(settings)), began_(began) {}
  const std::vector<Costs>& settings() const { return settings_; }
  const Recorded& of(const Problem& problem) {
    Plan plan;
    program::require(make_plan(kArch, problem, &plan));
    const std::string key = plan.kernel->main.name +
                            (problem.shape.kv_heads != problem.shape.heads ? " grouped" : "") +
                            (problem.deterministic ? " deterministic" : "");
    const auto found = shelf_.find(key);
    if (found != shelf_.end()) return found->second;
    began_("recording " + key);
    Recorded& recorded = shelf_[key];
    recorded.recordings = record(kArch, problem, kTripCounts);
    recorded.times.resize(settings_.size());
    in_parallel(settings_.size(),
                [&](std::size_t i) { recorded.times[i] = CtaTimes(recorded.recordings, settings_[i]); });
    return recorded;
  }

 private:
  const std::vector<Costs> settings_;
  const std::function<void(const std::string&)>& began_;
  std::map<std::string, Recorded> shelf_;
};

// Of what each setting gives, that of those with so many ports.
std::vector<double> of_ports(const std::vector<Costs>& settings, const std::vector<double>& values,
                             double ports) {
  std::vector<double> those;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (settings[i].shared_ports == ports) those.push_back(values[i]);
  }
  return those;
}

Row row_of(const Case& c, const Variant& variant, Shelf& shelf,
           const std::function<void(const std::string&)>& began) {
  const Problem problem = problem_of(c, variant), baseline = problem_of(c, kBaseline);
  Row row;
  row.name = c.name;
  row.variant = name_of(variant);
  row.shape = problem.shape;
  row.deterministic = c.deterministic;
  row.seqlen = c.seqlen;
  row.mask = c.mask;
  row.dtype = c.dtype;
  row.no_kernel = missing(c, variant);
  if (!row.no_kernel.empty()) return row;
  const Recorded &recorded = shelf.of(problem), &recorded_baseline = shelf.of(baseline);
  began("predicting " + c.name + " " + row.variant);
  const std::vector<std::int64_t> sequences = sequences_of(c);
  const std::vector<Costs>& settings = shelf.settings();
  const std::size_t n = settings.size();
  std::vector<double> tflops(n), before(n), tile(n), tile_before(n), shorter(n);
  row.ratios.resize(n);
  in_parallel(n, [&](std::size_t i) {
    const Predicted pass = predict(kArch, problem, recorded.times[i], settings[i], sequences),
                    pass_before =
                        predict(kArch, baseline, recorded_baseline.times[i], settings[i], sequences);
    tflops[i] = pass.tflops;
    before[i] = pass_before.tflops;
    row.ratios[i] = pass.tflops / pass_before.tflops;
    tile[i] = pass.tile_cycles;
    tile_before[i] = pass_before.tile_cycles;
    shorter[i] = 1 - pass.tile_cycles / pass_before.tile_cycles;
  });
  row.tflops = interval_of(tflops);
  row.tflops_baseline = interval_of(before);
  row.ratio = interval_of(row.ratios);
  row.tile_cycles = interval_of(tile);
  row.tile_baseline = interval_of(tile_before);
  row.tile_shorter = interval_of(shorter);
  if (n > 1) {
    row.ratio_one_port = interval_of(of_ports(settings, row.ratios, 1));
    row.ratio_two_ports = interval_of(of_ports(settings, row.ratios, 2));
  }
  return row;
}

std::vector<Costs> settings_for(bool with_intervals) {
  return with_intervals ? settings(kArch) : std::vector<Costs>{emulator::timing::nominal(kArch)};
}

}  // namespace

std::string_view name(Suite suite) {
  switch (suite) {
    case Suite::kEmulator:
      return "emulator";
    case Suite::kAblation:
      return "ablation";
    case Suite::kHeadline:
      return "headline";
    case Suite::kSweep:
      return "sweep";
    case Suite::kSensitivity:
      return "sensitivity";
    case Suite::kMicro:
      return "micro";
    case Suite::kBackward:
      return "backward";
    case Suite::kForward:
      return "forward";
    case Suite::kHost:
      return "host";
  }
  return "";
}

SuiteResult predict_headline(bool with_intervals, const std::function<void(const std::string&)>& began) {
  struct Published {
    Case c;
    double baseline, result;
  };
  const Published cases[] = {
      {{"dense_mha", kHeads, 32768}, 731, 841},
      {{"causal_mha", kHeads, 32768, Mask::kCausal}, 705, 808},
      {{"dense_gqa", 8, 16384}, 840, 903},
      {{"causal_gqa", 8, 16384, Mask::kCausal}, 750, 842},
      {{"dense_fp16", kHeads, 8192, Mask::kDense, Dtype::kF16}, 692, 782},
      {{"dense_det", kHeads, 16384, Mask::kDense, Dtype::kBf16, true}, 709, 774},
      {{"causal_det", kHeads, 16384, Mask::kCausal, Dtype::kBf16, true}, 664, 725},
  };
  Shelf shelf(settings_for(with_intervals), began);
  SuiteResult result;
  result.settings = shelf.settings().size();
  for (const Published& published : cases) {
    Row row = row_of(published.c, kResult, shelf, began);
    row.published_baseline = published.baseline;
    row.published = published.result;
    row.published_ratio_low = row.published_ratio_high = published.result / published.baseline;
    result.rows.push_back(std::move(row));
  }
  return result;
}

SuiteResult predict_ablation(bool with_intervals, const std::function<void(const std::string&)>& began) {
  struct Published {
    Variant variant;
    double dense_low, dense_high, causal_low, causal_high;
    double tile_shorter;  // of the dense tile; 0: not published
  };
  const Published changes[] = {
      {{TensorMemory::kSplit, Signal::kCta}, 1.02, 1.02, 1.03, 1.04, 0.05},
      {{TensorMemory::kAliased, Signal::kWarp}, 1.08, 1.09, 1.00, 1.01, 0},
      {kResult, 1.13, 1.15, 1.11, 1.15, 0.19},
  };
  Shelf shelf(settings_for(with_intervals), began);
  SuiteResult result;
  result.settings = shelf.settings().size();
  for (const Case& c : {Case{"dense_mha", kHeads, 32768}, Case{"causal_mha", kHeads, 32768, Mask::kCausal}}) {
    for (const Published& change : changes) {
      Row row = row_of(c, change.variant, shelf, began);
      const bool causal = c.mask == Mask::kCausal;
      row.published_ratio_low = causal ? change.causal_low : change.dense_low;
      row.published_ratio_high = causal ? change.causal_high : change.dense_high;
      if (!causal) row.published_shorter = change.tile_shorter;
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

namespace {

std::vector<Case> sweep_cases() {
  constexpr Mask kLocal = {1024, 0};
  std::vector<Case> cases;
  const auto add = [&](std::int64_t kv_heads, std::int64_t seqlen, const Mask& mask, Dtype dtype,
                       bool deterministic, bool ragged) {
    const char* const heads = kv_heads == kHeads ? "mha" : kv_heads == 1 ? "mqa" : "gqa";
    const std::string_view kind = mask == kLocal ? "local" : name(kind_of(mask));
    cases.push_back({fmt::format("{}_{}{}_{}{}_{}", kind, heads, ragged ? "_varlen" : "", name(dtype),
                                 deterministic ? "_det" : "", seqlen),
                     kv_heads, seqlen, mask, dtype, deterministic, ragged});
  };
  for (const std::int64_t seqlen : kSweepLengths) {
    for (const bool deterministic : {false, true}) {
      for (const std::int64_t kv_heads : {kHeads, std::int64_t{8}, std::int64_t{1}}) {
        for (const Mask& mask : {Mask::kDense, Mask::kCausal})
          add(kv_heads, seqlen, mask, Dtype::kBf16, deterministic, false);
      }
      add(kHeads, seqlen, kLocal, Dtype::kBf16, deterministic, false);
    }
    for (const Mask& mask : {Mask::kDense, Mask::kCausal}) {
      add(kHeads, seqlen, mask, Dtype::kF16, false, false);
      if (seqlen > kSweepLengths[0]) add(kHeads, seqlen, mask, Dtype::kBf16, false, true);
    }
  }
  return cases;
}

}  // namespace

SuiteResult predict_sweep(bool with_intervals, const std::function<void(const std::string&)>& began) {
  Shelf shelf(settings_for(with_intervals), began);
  SuiteResult result;
  result.settings = shelf.settings().size();
  for (const Case& c : sweep_cases()) result.rows.push_back(row_of(c, kResult, shelf, began));
  return result;
}

Summary summary(const std::vector<Row>& rows, bool deterministic, std::int64_t seqlen) {
  Summary summary;
  std::vector<double> logarithms, worst;  // under each setting
  for (const Row& row : rows) {
    if (!row.no_kernel.empty() || row.deterministic != deterministic) continue;
    if (seqlen != 0 && row.seqlen != seqlen) continue;
    if (summary.rows++ == 0) {
      logarithms.assign(row.ratios.size(), 0);
      worst.assign(row.ratios.size(), std::numeric_limits<double>::infinity());
    }
    if (row.ratios[0] < worst[0]) summary.worst_case = row.name;
    for (std::size_t i = 0; i < row.ratios.size(); ++i) {
      logarithms[i] += std::log(row.ratios[i]);
      worst[i] = std::min(worst[i], row.ratios[i]);
    }
  }
  if (summary.rows == 0) return summary;
  for (double& logarithm : logarithms) logarithm = std::exp(logarithm / summary.rows);
  summary.geometric_mean = interval_of(logarithms);
  summary.worst = interval_of(worst);
  return summary;
}

namespace {

// Of a tile in the steady state, by what one CTA of many tiles does more than one of fewer.
std::vector<Pair> work_of_units(const Recordings& before, const Recordings& after, const Costs& costs) {
  using emulator::timing::Busy;
  using emulator::timing::replay;
  constexpr std::pair<const char*, double Busy::*> kUnits[] = {
      {"issue slots", &Busy::issue},
      {"fp32 and integer multiplication", &Busy::fma},
      {"integers, logic, conversions", &Busy::alu},
      {"special functions", &Busy::special},
      {"shared memory, loads, stores and copies", &Busy::shared},
      {"shared memory, operands", &Busy::operands},
      {"tensor core", &Busy::tensor_core},
      {"tensor memory, reads", &Busy::tensor_read},
      {"tensor memory, writes", &Busy::tensor_write},
      {"copies in", &Busy::copies_in},
      {"reduction of dQ", &Busy::reductions}};
  const auto per_tile = [&](const Recordings& recordings, double Busy::*unit) {
    const auto& [most, last] = *recordings.rbegin();
    const auto& [fewer, other] = *std::next(recordings.rbegin());
    return (replay(last, costs, nullptr).busy.*unit - replay(other, costs, nullptr).busy.*unit) /
           (most - fewer);
  };
  std::vector<Pair> work;
  for (const auto& [name, unit] : kUnits)
    work.push_back({name, per_tile(before, unit), per_tile(after, unit)});
  return work;
}

using OnPath = Sensitivity::OnPath;

// The longest of the baseline first, then what is on the others alone.
std::vector<OnPath> paths(const Recordings& before, const Recordings& after, const Costs& usual,
                          const Costs& no_special) {
  std::vector<OnPath> paths;
  const auto walk = [&](const Recordings& recordings, const Costs& costs, double OnPath::*which) {
    emulator::trace::Run run;
    run.outcome = emulator::timing::replay(recordings.rbegin()->second, costs, &run.timeline);
    for (const auto& [what, cycles] : emulator::trace::critical_path(run)) {
      const auto found =
          std::find_if(paths.begin(), paths.end(), [&](const OnPath& path) { return path.what == what; });
      (found == paths.end() ? paths.emplace_back(OnPath{what}) : *found).*which = cycles;
    }
  };
  walk(before, usual, &OnPath::baseline);
  walk(after, usual, &OnPath::result);
  walk(after, no_special, &OnPath::beyond);
  return paths;
}

}  // namespace

Sensitivity predict_sensitivity(const std::function<void(const std::string&)>& began) {
  const Case c = {"dense_mha", kHeads, 32768};
  Shelf shelf(settings(kArch), began);
  const Recorded &baseline = shelf.of(problem_of(c, kBaseline)), &changed = shelf.of(problem_of(c, kResult));
  const Recordings &before = baseline.recordings, &after = changed.recordings;
  const Costs usual = emulator::timing::nominal(kArch);
  std::vector<std::pair<std::string, Costs>> changes = {{"nominal", usual}};
  for (const emulator::timing::Constant& constant : emulator::timing::constants(kArch)) {
    for (const double value : {constant.low, constant.high}) {
      if (value == constant.nominal) continue;
      changes.emplace_back(fmt::format("{} {:g}", constant.name, value), usual);
      changes.back().second.*constant.value = value;
    }
  }
  constexpr double kNothing = 1e-3, kEndless = 1e9;
  const auto free = [&](const char* what, std::initializer_list<std::pair<double Costs::*, double>> values) {
    changes.emplace_back(std::string(what) + " free", usual);
    for (const auto& [field, value] : values) changes.back().second.*field = value;
  };
  free("special functions", {{&Costs::special, kNothing}, {&Costs::special_latency, 4}});
  const Costs no_special = changes.back().second;
  free("fp32, integers and conversions", {{&Costs::fma2, kNothing},
                                          {&Costs::alu, kNothing},
                                          {&Costs::convert, kNothing},
                                          {&Costs::integer, kNothing}});
  free("shared memory", {{&Costs::shared_bytes, kEndless}, {&Costs::register_bytes, kEndless}});
  free("reads of tensor memory", {{&Costs::tensor_read_bytes, kEndless}, {&Costs::tensor_load_latency, 0}});
  free("signals and barriers", {{&Costs::arrive, 0},
                                {&Costs::wake, 0},
                                {&Costs::ask, 0},
                                {&Costs::barrier, 0},
                                {&Costs::barrier_warp, 0},
                                {&Costs::product_issue, 0},
                                {&Costs::commit, 0}});
  free("loads by TMA",
       {{&Costs::copy_latency, 0}, {&Costs::small_copy_latency, 0}, {&Costs::copy_bytes, kEndless}});
  free("the reduction of dQ", {{&Costs::reduce_bytes, kEndless}, {&Costs::reduce_latency, 0}});
  Sensitivity result;
  result.cycles.resize(changes.size());
  began("replaying");
  in_parallel(changes.size(), [&](std::size_t i) {
    result.cycles[i] = {changes[i].first, CtaTimes(before, changes[i].second).tile(),
                        CtaTimes(after, changes[i].second).tile()};
  });
  result.work = work_of_units(before, after, usual);

  result.path = paths(before, after, usual, no_special);

  const std::vector<Costs>& all = shelf.settings();
  std::vector<double> ratios(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) ratios[i] = baseline.times[i].tile() / changed.times[i].tile();
  result.widths.push_back({"nothing more", interval_of(ratios)});
  for (const emulator::timing::Constant& constant : emulator::timing::constants(kArch)) {
    if (!constant.open) continue;
    std::vector<double> left;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].*constant.value == constant.nominal) left.push_back(ratios[i]);
    }
    result.widths.push_back({constant.name, interval_of(left)});
  }

  Problem wide;
  wide.shape.head_dim = 128;
  std::vector<double> tiles;
  for (const CtaTimes& times : shelf.of(wide).times) tiles.push_back(times.tile());
  result.check_one_port = interval_of(of_ports(all, tiles, 1));
  result.check_two_ports = interval_of(of_ports(all, tiles, 2));
  return result;
}

}  // namespace flashback::bench
