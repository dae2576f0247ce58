// When a gradient is right.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "attention/problem.h"

namespace flashback {

struct Extent {  // of a packed tensor (batch, row, head, channel)
  std::int64_t batch, rows, heads, channels;
};

struct Verdict {
  bool ok = false;
  double max_abs = 0;                      // max |g - ref| over the tensor
  double rel = 0;                          // |g - ref| / |ref| in the L2 norm; 0 when both are 0
  double limit = 0;                        // of max_abs: 2 max |ref16 - ref| + floor
  std::array<std::int64_t, 4> worst = {};  // (batch, row, head, channel) of max_abs, or of the first NaN
  double block_ratio =
      0;  // the largest L2 error of a (batch, head, 64 rows) block over its own limit; ok needs <= 1
  std::array<std::int64_t, 4> worst_block = {};  // (batch, head, first row, one past the last)
  std::string sentence;                          // empty when ok, else what is wrong and where
};

// The size of a tensor as a power of two, at most 1: the root of its mean square, rounded. 1 for zeros.
double unit_of(std::span<const float> dout);

// The gradient `g` against the exact `ref`, with the error of 16-bit arithmetic `ref16` as the measure. Right
// when
//   max |g - ref| <= 2 max |ref16 - ref| + floor              over the tensor, and
//   |g - ref|_2  <= 2 |ref16 - ref|_2 + floor * sqrt(count)   for each (batch, head, block of 64 rows),
// with floor = 2 max |(ref + 0.3 unit) - 0.3 unit - ref| evaluated in `dtype`. `unit` is that of dout:
// gradients are linear in dout, and without it a trained layer's, of 1e-5, would pass as zeros. The rows
// after the last whole block belong to it: how a single row's roundings fall on either side is luck. A NaN or
// an infinity in `g` is always wrong.
Verdict judge(std::span<const float> g, std::span<const double> ref, std::span<const float> ref16,
              const Extent& extent, Dtype dtype, double unit = 1);

// How far lse may be from the exact one: a score, at most `scale` times the largest norms of q and k, is
// truncated by the tensor cores after every 16 products and rounded twice, when it is scaled and when the
// sum's logarithm is added; and 2e-6 for exp2 and log2.
double lse_limit(std::span<const float> q, std::span<const float> k, std::int64_t head_dim, double scale);

}  // namespace flashback
