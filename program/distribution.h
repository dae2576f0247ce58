// How the values of a tensor are spread: what tells a trained layer's tensors from random numbers.
#pragma once

#include <span>

namespace flashback::program {

struct Distribution {
  double max_abs = 0;
  double kurtosis =
      0;  // fourth central moment over the squared variance; 3 for a normal distribution, NaN for a constant
};
Distribution distribution_of(std::span<const float> values);

struct Range {
  double least = 0, most = 0;  // of the finite values
  std::size_t infinite = 0;    // rows that see no key
};
Range range_of(std::span<const float> values);

}  // namespace flashback::program
