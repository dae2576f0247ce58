#include "program/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace flashback::program {

Distribution distribution_of(std::span<const float> values) {
  Distribution result;
  double sum = 0;
  for (const float value : values) {
    sum += value;
    result.max_abs = std::max(result.max_abs, std::fabs(double(value)));
  }
  const double count = double(values.size()), mean = sum / count;
  double squares = 0, fourths = 0;
  for (const float value : values) {
    const double square = (value - mean) * (value - mean);
    squares += square;
    fourths += square * square;
  }
  result.kurtosis =
      squares > 0 ? fourths * count / (squares * squares) : std::numeric_limits<double>::quiet_NaN();
  return result;
}

Range range_of(std::span<const float> values) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0};
  for (const float value : values) {
    if (std::isinf(value)) {
      ++range.infinite;
      continue;
    }
    range.least = std::min(range.least, double(value));
    range.most = std::max(range.most, double(value));
  }
  return range;
}

}  // namespace flashback::program
