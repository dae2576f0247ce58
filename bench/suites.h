// The published tables, each row beside what is predicted or measured: the headline (before and after, seven
// cases), the ablation (each change alone) and the sweep over lengths.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attention/problem.h"
#include "bench/prediction.h"

namespace flashback::bench {

// A case of a suite in one variant, and how it stands to the baseline (aliased/cta).
struct Row {
  std::string name;     // dense_mha
  std::string variant;  // split/warp
  Shape shape;
  std::int64_t seqlen = 0;  // of ragged sequences the longest
  bool deterministic = false;
  Mask mask = Mask::kDense;
  Dtype dtype = Dtype::kBf16;
  std::string no_kernel;  // why there is nothing to say; the rest is empty then

  Interval tflops, tflops_baseline, ratio, tile_cycles, tile_baseline;
  Interval tile_shorter;       // than the baseline's, as a share of that
  std::vector<double> ratios;  // under each setting, the first nominal
  // The same by the model of shared memory's ports, one and two: what either says may be far apart.
  Interval ratio_one_port, ratio_two_ports;
  // As published: of the baseline, of the variant, and their ratio; a range where the text has one. 0: none.
  double published_baseline = 0, published = 0, published_ratio_low = 0, published_ratio_high = 0;
  double published_shorter = 0;
  bool has_interval() const { return ratios.size() > 1; }
  bool has_published() const { return published_ratio_low != 0; }
  bool inside() const {
    return has_published() && ratio.low <= published_ratio_high && published_ratio_low <= ratio.high;
  }
};

enum class Suite {
  kEmulator,
  kAblation,
  kHeadline,
  kSweep,
  kSensitivity,
  kMicro,
  kBackward,
  kForward,
  kHost
};
std::string_view name(Suite suite);  // emulator, ablation, ...

struct SuiteResult {
  std::vector<Row> rows;
  std::size_t settings = 0;  // of the open constants that an interval goes over
};

// What the ratios of a sweep come to, of its rows with a kernel that are deterministic or not, and of some
// length or of all (0).
struct Summary {
  int rows = 0;
  Interval geometric_mean, worst;
  std::string worst_case;  // nominal
};
Summary summary(const std::vector<Row>& rows, bool deterministic, std::int64_t seqlen = 0);
inline constexpr std::int64_t kSweepLengths[] = {512, 1024, 2048, 4096, 8192, 16384, 32768};

// Predicted for a B200. `began` hears of each step. Throws program::Failure.
SuiteResult predict_headline(bool with_intervals, const std::function<void(const std::string&)>& began);
SuiteResult predict_ablation(bool with_intervals, const std::function<void(const std::string&)>& began);
// 124 rows of the kinds that were published: lengths 512 to 32k; grouped queries; dense, causal, local and
// variable lengths; both dtypes; deterministic and not. Which rows those were is not published.
SuiteResult predict_sweep(bool with_intervals, const std::function<void(const std::string&)>& began);

// Of a dense tile, aliased/cta and split/warp.
struct Pair {
  std::string what;
  double baseline = 0, result = 0;
};
struct Sensitivity {
  // Cycles when one thing is different and all else nominal: each constant at its low and high, and units
  // that cost nothing, which says what binds: "copy_latency 450", "tensor core free".
  std::vector<Pair> cycles;
  std::vector<Pair> work;  // cycles for which each unit works
  // Cycles on the critical path of a tile, nominal; and on that of the result were special functions free,
  // which says what binds when the slowest warp does not.
  struct OnPath {
    std::string what;
    double baseline = 0, result = 0, beyond = 0;
  };
  std::vector<OnPath> path;
  // What is left of the interval of the ratio of cycles were one open constant known, and nominal.
  struct Width {
    std::string known;
    Interval ratio;
  };
  std::vector<Width> widths;  // the first: nothing more is known
  // The check of the port model: cycles of a dense tile at head dimension 128, with one port and with two.
  Interval check_one_port, check_two_ports;
};
// As published for one CTA a tile: 1247.5 TFLOP/s of 148 multiprocessors at 1.85 GHz.
inline constexpr double kPublishedCheckCycles = 4603;
Sensitivity predict_sensitivity(const std::function<void(const std::string&)>& began);

}  // namespace flashback::bench
