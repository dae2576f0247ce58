#include "bench/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/reference/rounding.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using program::require;

// 4096 rows of four heads: some seconds on sixteen cores.
constexpr double kMostProducts = 4.0 * 4096 * 4096;

Address last_sequence(const Tensor& tensor, std::int64_t batch) {
  return tensor.data + std::uint64_t(2 * (batch - 1) * tensor.batch_stride);
}

}  // namespace

bool Slice::fits(const Shape& s) {
  return double(s.heads / s.kv_heads) * double(s.seqlen_q) * double(s.seqlen_k) <= kMostProducts;
}

Slice::Slice(Workbench& workbench, const Pass& pass, int threads)
    : workbench_(workbench),
      stream_(pass.stream),
      cell_(pass.cell),
      group_(pass.cell.shape.heads / pass.cell.shape.kv_heads) {
  const Shape& s = cell_.shape;
  const auto values = [&](const Tensor& tensor, std::int64_t rows, std::int64_t heads, std::int64_t taken) {
    return reference::from_bits(cell_.dtype, download(tensor, rows, heads, taken));
  };
  reference::Inputs inputs;
  inputs.q = values(pass.tensors.q, s.seqlen_q, s.heads, group_);
  inputs.k = values(pass.tensors.k, s.seqlen_k, s.kv_heads, 1);
  inputs.v = values(pass.tensors.v, s.seqlen_k, s.kv_heads, 1);
  const bool forward = cell_.direction == Direction::kForward;
  if (forward) {
    inputs.dout.resize(inputs.q.size());  // the references work out gradients too
  } else {
    inputs.dout = values(pass.tensors.dout, s.seqlen_q, s.heads, group_);
    unit_ = unit_of(inputs.dout);
  }

  Problem problem;
  problem.shape = s;
  reference::Question question;
  question.shape = {1, group_, 1, s.seqlen_q, s.seqlen_k, s.head_dim};
  question.mask = pass.cell.mask;
  question.scale = effective_scale(problem);
  exact_ = reference::exact(question, inputs, threads);
  const std::vector<float> out = reference::stored(exact_.out, cell_.dtype);
  sixteen_bit_ = reference::sixteen_bit(question, inputs, out, cell_.dtype, threads);
  if (forward) {
    lse_limit_ = lse_limit(inputs.q, inputs.k, s.head_dim, question.scale);
  } else {
    write_out(pass, out);
    write_lse(pass);
  }
}

// The last `taken` of `heads` heads of the last sequence, packed (row, head, channel).
std::vector<std::uint16_t> Slice::download(const Tensor& tensor, std::int64_t rows, std::int64_t heads,
                                           std::int64_t taken) {
  const std::int64_t row = heads * cell_.shape.head_dim, part = taken * cell_.shape.head_dim;
  std::vector<std::uint16_t> sequence(std::size_t(rows * row)), slice;
  require(workbench_.download(std::as_writable_bytes(std::span(sequence)),
                              last_sequence(tensor, cell_.shape.batch), stream_));
  require(workbench_.wait(stream_));
  for (std::int64_t r = 1; r <= rows; ++r)
    slice.insert(slice.end(), sequence.begin() + (r * row - part), sequence.begin() + r * row);
  return slice;
}

void Slice::write_out(const Pass& pass, const std::vector<float>& out) {
  const std::vector<std::uint16_t> bits = reference::to_bits(cell_.dtype, out);
  std::vector<std::uint16_t> sequence =
      download(pass.tensors.out, cell_.shape.seqlen_q, cell_.shape.heads, cell_.shape.heads);
  const std::int64_t row = cell_.shape.heads * cell_.shape.head_dim, part = group_ * cell_.shape.head_dim;
  for (std::int64_t r = 0; r < cell_.shape.seqlen_q; ++r)
    std::copy_n(bits.begin() + r * part, part, sequence.begin() + ((r + 1) * row - part));
  require(workbench_.upload(last_sequence(pass.tensors.out, cell_.shape.batch),
                            std::as_bytes(std::span(sequence)), stream_));
  require(workbench_.wait(stream_));
}

// Where the lse of the group's `head` begins.
Address Slice::lse_of(const Pass& pass, std::int64_t head) const {
  const LseTensor& lse = pass.tensors.lse;
  const std::int64_t before =
      (cell_.shape.batch - 1) * lse.batch_stride + (cell_.shape.heads - group_ + head) * lse.head_stride;
  return lse.data + std::uint64_t(before) * sizeof(float);
}

void Slice::write_lse(const Pass& pass) {
  const std::vector<float> lse(exact_.lse.begin(), exact_.lse.end());  // (head, row), the last of all
  const std::size_t rows = std::size_t(cell_.shape.seqlen_q);
  for (std::int64_t head = 0; head < group_; ++head) {
    require(workbench_.upload(
        lse_of(pass, head), std::as_bytes(std::span(lse).subspan(std::size_t(head) * rows, rows)), stream_));
  }
  require(workbench_.wait(stream_));
}

Verdict Slice::judge_lse(const Pass& pass) {
  const std::size_t rows = std::size_t(cell_.shape.seqlen_q);
  std::vector<float> lse(exact_.lse.size());
  for (std::int64_t head = 0; head < group_; ++head) {
    require(
        workbench_.download(std::as_writable_bytes(std::span(lse).subspan(std::size_t(head) * rows, rows)),
                            lse_of(pass, head), stream_));
  }
  require(workbench_.wait(stream_));
  Verdict verdict;
  verdict.limit = lse_limit_;
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double error = std::fabs(lse[i] - exact_.lse[i]);
    if (!(error <= verdict.max_abs) && !std::isnan(verdict.max_abs)) verdict.max_abs = error;
    errors += error * error;
    squares += exact_.lse[i] * exact_.lse[i];
  }
  verdict.rel = errors == 0 ? 0 : std::sqrt(errors / squares);
  verdict.ok = verdict.max_abs <= verdict.limit;
  if (!verdict.ok)
    verdict.sentence =
        fmt::format("a logarithm is off by {:.2e}; accepted: {:.2e}", verdict.max_abs, verdict.limit);
  return verdict;
}

SliceVerdicts Slice::judge(const Pass& pass) {
  const auto references =
      [&](std::string_view name) -> std::pair<std::span<const double>, std::span<const float>> {
    if (name == "out") return {exact_.out, sixteen_bit_.out};
    if (name == "dq") return {exact_.dq, sixteen_bit_.dq};
    if (name == "dk") return {exact_.dk, sixteen_bit_.dk};
    return {exact_.dv, sixteen_bit_.dv};
  };
  SliceVerdicts verdicts;
  for (const Output& output : outputs(pass)) {
    const std::int64_t taken = output.heads == cell_.shape.heads ? group_ : 1;
    const auto [ref, ref16] = references(output.name);
    verdicts.add(
        output.name,
        flashback::judge(
            reference::from_bits(cell_.dtype, download(output.tensor, output.rows, output.heads, taken)), ref,
            ref16, Extent{1, output.rows, taken, cell_.shape.head_dim}, cell_.dtype, unit_));
  }
  if (cell_.direction == Direction::kForward) verdicts.add("lse", judge_lse(pass));
  return verdicts;
}

}  // namespace flashback::bench
