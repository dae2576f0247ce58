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
      whole_(pass.shape),
      group_(pass.shape.heads / pass.shape.kv_heads) {
  const Shape& s = whole_;
  const auto values = [&](const Tensor& tensor, std::int64_t rows, std::int64_t heads, std::int64_t taken) {
    return reference::from_bits(Dtype::kBf16, download(tensor, rows, heads, taken));
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
  question.mask = pass.mask;
  question.scale = effective_scale(problem);
  exact_ = reference::exact(question, inputs, threads);
  const std::vector<float> out = reference::stored(exact_.out, Dtype::kBf16);
  sixteen_bit_ = reference::sixteen_bit(question, inputs, out, Dtype::kBf16, threads);
  write_out(pass, out);
  write_lse(pass);
}

// The last `taken` of `heads` heads of the last sequence, packed (row, head, channel).
std::vector<std::uint16_t> Slice::download(const Tensor& tensor, std::int64_t rows, std::int64_t heads,
                                           std::int64_t taken) {
  const std::int64_t row = heads * whole_.head_dim, part = taken * whole_.head_dim;
  std::vector<std::uint16_t> sequence(std::size_t(rows * row)), slice;
  require(workbench_.download(std::as_writable_bytes(std::span(sequence)),
                              last_sequence(tensor, whole_.batch), stream_));
  require(workbench_.wait(stream_));
  for (std::int64_t r = 1; r <= rows; ++r)
    slice.insert(slice.end(), sequence.begin() + (r * row - part), sequence.begin() + r * row);
  return slice;
}

void Slice::write_out(const Pass& pass, const std::vector<float>& out) {
  const std::vector<std::uint16_t> bits = reference::to_bits(Dtype::kBf16, out);
  std::vector<std::uint16_t> sequence =
      download(pass.tensors.out, whole_.seqlen_q, whole_.heads, whole_.heads);
  const std::int64_t row = whole_.heads * whole_.head_dim, part = group_ * whole_.head_dim;
  for (std::int64_t r = 0; r < whole_.seqlen_q; ++r)
    std::copy_n(bits.begin() + r * part, part, sequence.begin() + ((r + 1) * row - part));
  require(workbench_.upload(last_sequence(pass.tensors.out, whole_.batch), std::as_bytes(std::span(sequence)),
                            stream_));
  require(workbench_.wait(stream_));
}

void Slice::write_lse(const Pass& pass) {
  const std::vector<float> lse(exact_.lse.begin(), exact_.lse.end());  // (head, row), the last of all
  const std::int64_t before = (whole_.batch * whole_.heads - group_) * whole_.seqlen_q;
  require(workbench_.upload(pass.tensors.lse.data + std::uint64_t(before) * sizeof(float),
                            std::as_bytes(std::span(lse)), stream_));
  require(workbench_.wait(stream_));
}

SliceVerdicts Slice::judge(const Pass& pass) {
  const Shape& s = whole_;
  const auto verdict = [&](const Tensor& tensor, std::int64_t rows, std::int64_t heads, std::int64_t taken,
                           const std::vector<double>& ref, const std::vector<float>& ref16) {
    return flashback::judge(reference::from_bits(Dtype::kBf16, download(tensor, rows, heads, taken)), ref,
                            ref16, Extent{1, rows, taken, s.head_dim}, Dtype::kBf16, unit_);
  };
  return {verdict(pass.tensors.dq, s.seqlen_q, s.heads, group_, exact_.dq, sixteen_bit_.dq),
          verdict(pass.tensors.dk, s.seqlen_k, s.kv_heads, 1, exact_.dk, sixteen_bit_.dk),
          verdict(pass.tensors.dv, s.seqlen_k, s.kv_heads, 1, exact_.dv, sixteen_bit_.dv)};
}

}  // namespace flashback::bench
