#include "bench/slice.h"

#include <algorithm>

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
  inputs.dout = values(pass.tensors.dout, s.seqlen_q, s.heads, group_);
  unit_ = unit_of(inputs.dout);

  Problem problem;
  problem.shape = s;
  reference::Question question;
  question.shape = {1, group_, 1, s.seqlen_q, s.seqlen_k, s.head_dim};
  question.mask = pass.cell.mask;
  question.scale = effective_scale(problem);
  exact_ = reference::exact(question, inputs, threads);
  const std::vector<float> out = reference::stored(exact_.out, cell_.dtype);
  sixteen_bit_ = reference::sixteen_bit(question, inputs, out, cell_.dtype, threads);
  write_out(pass, out);
  write_lse(pass);
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

void Slice::write_lse(const Pass& pass) {
  const std::vector<float> lse(exact_.lse.begin(), exact_.lse.end());  // (head, row), the last of all
  const LseTensor& to = pass.tensors.lse;
  const std::size_t rows = std::size_t(cell_.shape.seqlen_q);
  for (std::int64_t head = 0; head < group_; ++head) {
    const std::int64_t before =
        (cell_.shape.batch - 1) * to.batch_stride + (cell_.shape.heads - group_ + head) * to.head_stride;
    require(workbench_.upload(to.data + std::uint64_t(before) * sizeof(float),
                              std::as_bytes(std::span(lse).subspan(std::size_t(head) * rows, rows)),
                              stream_));
  }
  require(workbench_.wait(stream_));
}

SliceVerdicts Slice::judge(const Pass& pass) {
  const Shape& s = cell_.shape;
  const auto verdict = [&](const Tensor& tensor, std::int64_t rows, std::int64_t heads, std::int64_t taken,
                           const std::vector<double>& ref, const std::vector<float>& ref16) {
    return flashback::judge(reference::from_bits(cell_.dtype, download(tensor, rows, heads, taken)), ref,
                            ref16, Extent{1, rows, taken, s.head_dim}, cell_.dtype, unit_);
  };
  return {verdict(pass.tensors.dq, s.seqlen_q, s.heads, group_, exact_.dq, sixteen_bit_.dq),
          verdict(pass.tensors.dk, s.seqlen_k, s.kv_heads, 1, exact_.dk, sixteen_bit_.dk),
          verdict(pass.tensors.dv, s.seqlen_k, s.kv_heads, 1, exact_.dv, sixteen_bit_.dv)};
}

}  // namespace flashback::bench
