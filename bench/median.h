#pragma once

#include <algorithm>
#include <vector>

namespace flashback::bench {

// The middle value, or the mean of the middle two; 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace flashback::bench
