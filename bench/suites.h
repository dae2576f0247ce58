// The published tables, each row beside what is predicted or measured: the headline (before and after, seven
// cases), the ablation (each change alone) and the sweep over lengths.
#pragma once

#include <functional>
#include <optional>
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
  Mask mask = Mask::kDense;
  Dtype dtype = Dtype::kBf16;
  std::string no_kernel;  // why there is nothing to say; the rest is empty then

  Interval tflops, tflops_baseline, ratio, tile_cycles, tile_baseline;
  // As published: of the baseline, of the variant, and their ratio; a range where the text has one. 0: none.
  double published_baseline = 0, published = 0, published_ratio_low = 0, published_ratio_high = 0;
  bool has_published() const { return published_ratio_low != 0; }
  bool inside() const {
    return has_published() && ratio.low <= published_ratio_high && published_ratio_low <= ratio.high;
  }
};

enum class Suite { kEmulator, kAblation, kHeadline, kSweep, kSensitivity, kMicro, kBackward, kHost };
std::string_view name(
    Suite suite);  // emulator | ablation | headline | sweep | sensitivity | micro | backward | host

struct SuiteResult {
  std::vector<Row> rows;
  std::size_t settings = 0;  // of the open constants that an interval goes over
  // Of the rows that have kernels; a sweep's.
  std::optional<double> geometric_mean, worst;
};

// Predicted for a B200. `began` hears of each step. Throws program::Failure.
SuiteResult predict_headline(bool with_intervals, const std::function<void(const std::string&)>& began);
SuiteResult predict_ablation(bool with_intervals, const std::function<void(const std::string&)>& began);
SuiteResult predict_sweep(const std::function<void(const std::string&)>& began);

// What a tile takes when one thing is different and all else nominal: each constant at its low and high, and
// units that cost nothing, which says what binds.
struct Sensitivity {
  std::string what;       // "copy_latency 450", "tensor core free"
  double baseline, tile;  // cycles of a tile, dense, aliased/cta and split/warp
};
std::vector<Sensitivity> predict_sensitivity(const std::function<void(const std::string&)>& began);

}  // namespace flashback::bench
