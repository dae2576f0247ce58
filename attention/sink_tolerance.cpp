#include "attention/sink_tolerance.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace flashback {
namespace {

// A term's way through the sums, whichever way a kernel takes: eight channels one after another and the
// threads of a row, at most 16, in a tree; less dlse; times the weight; the rows of a tile, at most 128, and
// its warps; the tiles, 256 threads at once, and these in a tree.
double roundings_of_sums(std::int64_t tiles) {
  return 8 + 4 + 1 + 1 + 5 + 4 + std::ceil(double(tiles) / 256) + 8;
}
// The weight, exp2((sink - lse) * log2(e)): of the exponent the difference, the constant and the product are
// rounded; the function itself is right to 2^-22.
double roundings_of_weight(double sink, double lse) {
  return 3 * std::abs(sink - lse) + 4;
}

struct Sum {
  double value = 0, error = 0;
};

Sum exact_sum(const reference::Question& question, const reference::Inputs& inputs, std::int64_t head,
              std::span<const float> lse, std::span<const float> out) {
  const Shape& s = question.shape;
  const double sink = inputs.sink[std::size_t(head)];
  std::vector<reference::Rows> sequences = question.q_rows;
  if (sequences.empty()) {
    for (std::int64_t batch = 0; batch < s.batch; ++batch)
      sequences.push_back({batch * s.seqlen_q, s.seqlen_q});
  }
  Sum sum;
  std::int64_t tiles = 0;
  double terms = 0;  // of their magnitudes
  for (const reference::Rows& sequence : sequences) {
    tiles += (sequence.count + 63) / 64;  // the smallest tiles that there are
    for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row) {
      const std::int64_t batch = question.q_packed ? 0 : row / s.seqlen_q,
                         first = (batch * s.heads + head) * s.seqlen_q + row - batch * s.seqlen_q;
      const double lse_of_row = lse[std::size_t(first)];
      const bool sees_keys = !std::isinf(lse_of_row);
      double delta = 0, magnitude = 0;
      for (std::int64_t c = 0; sees_keys && c < s.head_dim; ++c) {
        const auto at = std::size_t((row * s.heads + head) * s.head_dim + c);
        const double product = double(inputs.dout[at]) * out[at];
        delta += product;
        magnitude += std::abs(product);
      }
      if (!inputs.dlse.empty()) {
        delta -= inputs.dlse[std::size_t(first)];
        magnitude += std::abs(inputs.dlse[std::size_t(first)]);
      }
      const double weight = sees_keys ? std::exp(sink - lse_of_row) : 1;
      sum.value -= weight * delta;
      sum.error += weight * magnitude * (sees_keys ? roundings_of_weight(sink, lse_of_row) : 0) * 0x1p-24;
      terms += weight * magnitude;
    }
  }
  sum.error += terms * roundings_of_sums(tiles) * 0x1p-24;
  return sum;
}

}  // namespace

Verdict judge_sink(std::span<const float> dsink, const reference::Question& question,
                   const reference::Inputs& inputs, std::span<const float> lse, std::span<const float> out) {
  Verdict verdict;
  verdict.ok = true;
  double errors = 0, squares = 0;
  for (std::int64_t head = 0; head < question.shape.heads; ++head) {
    const Sum right = exact_sum(question, inputs, head, lse, out);
    const double error = std::abs(dsink[std::size_t(head)] - right.value);
    errors += error * error;
    squares += right.value * right.value;
    const double ratio = error == 0 ? 0 : error / right.error;
    if (head > 0 && ratio <= verdict.block_ratio)
      continue;  // not where one is no number: that is over every limit
    verdict.max_abs = error;
    verdict.limit = right.error;
    verdict.block_ratio = ratio;
    verdict.worst = {0, 0, head, 0};
    if (ratio <= 1) continue;
    verdict.ok = false;
    verdict.sentence =
        fmt::format("{:g} of head {}, where {:g} is right: off by {:.3g}, over the limit of {:.3g}",
                    dsink[std::size_t(head)], head, right.value, error, right.error);
    if (std::isnan(ratio)) break;
  }
  verdict.rel = errors == 0 ? 0 : std::sqrt(errors / squares);
  return verdict;
}

}  // namespace flashback
