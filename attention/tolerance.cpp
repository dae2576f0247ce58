#include "attention/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/reference/rounding.h"

namespace flashback {
namespace {

constexpr std::int64_t kBlockRows = 64;

// What adding and taking away 0.3 units costs a value of `dtype`: its resolution near the size of a gradient.
double resolution(double value, Dtype dtype, double unit) {
  using reference::round_to;
  const float stored = round_to(dtype, static_cast<float>(value / unit));
  const float raised = round_to(dtype, stored + 0.3f);
  return unit * std::abs(round_to(dtype, round_to(dtype, raised - 0.3f) - stored));
}

double largest_norm(std::span<const float> rows, std::int64_t channels) {
  double most = 0, square = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    square += static_cast<double>(rows[i]) * rows[i];
    if ((i + 1) % static_cast<std::size_t>(channels) != 0) continue;
    most = std::max(most, square);
    square = 0;
  }
  return std::sqrt(most);
}

}  // namespace

double lse_limit(std::span<const float> q, std::span<const float> k, std::int64_t head_dim, double scale) {
  const double score = std::abs(scale) * largest_norm(q, head_dim) * largest_norm(k, head_dim);
  const auto roundings = static_cast<double>((head_dim + 15) / 16 + 2);
  return roundings * score * 0x1p-23 + 2e-6;
}

double unit_of(std::span<const float> dout) {
  double sum = 0;
  for (float value : dout) sum += double(value) * value;
  if (sum == 0) return 1;
  return std::min(1.0, std::exp2(std::round(std::log2(sum / static_cast<double>(dout.size())) / 2)));
}

Verdict judge(std::span<const float> g, std::span<const double> ref, std::span<const float> ref16,
              const Extent& extent, Dtype dtype, double unit) {
  const auto [batches, rows, heads, channels] = extent;
  const std::size_t size = static_cast<std::size_t>(batches * rows * heads * channels);
  Verdict verdict;
  if (g.size() != size || ref.size() != size || ref16.size() != size) {
    verdict.sentence = fmt::format("sizes differ: g {}, ref {}, ref16 {}, extent {}", g.size(), ref.size(),
                                   ref16.size(), size);
    return verdict;
  }
  auto position = [&](std::size_t i) {
    const auto n = static_cast<std::int64_t>(i);
    return std::array<std::int64_t, 4>{n / channels / heads / rows, n / channels / heads % rows,
                                       n / channels % heads, n % channels};
  };

  double error16 = 0, floor = 0, error_sum = 0, ref_sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double error = std::abs(g[i] - ref[i]);
    if (!std::isfinite(error)) {
      verdict.worst = position(i);
      const auto [b, r, h, c] = verdict.worst;
      verdict.max_abs = error;
      verdict.sentence = fmt::format("{} at batch {}, row {}, head {}, channel {}, where {:g} is right", g[i],
                                     b, r, h, c, ref[i]);
      return verdict;
    }
    if (error > verdict.max_abs) {
      verdict.max_abs = error;
      verdict.worst = position(i);
    }
    error16 = std::max(error16, std::abs(ref16[i] - ref[i]));
    floor = std::max(floor, resolution(ref[i], dtype, unit));
    error_sum += error * error;
    ref_sum += ref[i] * ref[i];
  }
  floor *= 2;
  verdict.limit = 2 * error16 + floor;
  verdict.rel = error_sum == 0 ? 0 : std::sqrt(error_sum / ref_sum);

  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t first = 0, last; first < rows; first = last) {
        last = rows - first < 2 * kBlockRows ? rows : first + kBlockRows;
        double sum = 0, sum16 = 0;
        for (std::int64_t r = first; r < last; ++r) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const std::size_t i = ((b * rows + r) * heads + h) * channels + c;
            sum += (g[i] - ref[i]) * (g[i] - ref[i]);
            sum16 += (ref16[i] - ref[i]) * (ref16[i] - ref[i]);
          }
        }
        if (sum == 0) continue;
        const double count = static_cast<double>((last - first) * channels);
        const double ratio = std::sqrt(sum) / (2 * std::sqrt(sum16) + floor * std::sqrt(count));
        if (ratio > verdict.block_ratio) {
          verdict.block_ratio = ratio;
          verdict.worst_block = {b, h, first, last};
        }
      }
    }
  }

  verdict.ok = verdict.max_abs <= verdict.limit && verdict.block_ratio <= 1;
  if (verdict.max_abs > verdict.limit) {
    const auto [b, r, h, c] = verdict.worst;
    verdict.sentence =
        fmt::format("off by {:.3g}, over the limit of {:.3g}, at batch {}, row {}, head {}, channel {}",
                    verdict.max_abs, verdict.limit, b, r, h, c);
  } else if (!verdict.ok) {
    const auto [b, h, first, last] = verdict.worst_block;
    verdict.sentence = fmt::format(
        "the error of rows {} to {} of batch {}, head {} is {:.3g} times its limit in the L2 norm", first,
        last - 1, b, h, verdict.block_ratio);
  }
  return verdict;
}

}  // namespace flashback
