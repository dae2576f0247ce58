// A peer in double precision on host memory, which is the emulator's device memory. FORGETFUL: one that does
// not write the last row of dk. REFUSING: one that does nothing but say so.
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/peer.h"

namespace {

struct View {
  const flashback_peer_tensor& tensor;

  std::uint16_t& bits(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t d) const {
    return static_cast<std::uint16_t*>(
        tensor.data)[b * tensor.batch_stride + row * tensor.row_stride + head * tensor.head_stride + d];
  }
  double get(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t d) const {
    return std::bit_cast<float>(std::uint32_t{bits(b, row, head, d)} << 16);
  }
  void set(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t d, double value) const {
    const auto word = std::bit_cast<std::uint32_t>(float(value));
    bits(b, row, head, d) = std::uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
};

void backward_head(const flashback_peer_arguments& a, std::int64_t b, std::int64_t kv_head) {
  const View q{a.q}, k{a.k}, v{a.v}, out{a.out}, dout{a.dout}, dq{a.dq}, dk{a.dk}, dv{a.dv};
  const std::int64_t D = a.head_dim, group = a.heads / a.kv_heads;
  std::vector<double> dk_sum(std::size_t(a.seqlen_k * D)), dv_sum(dk_sum.size());
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    for (std::int64_t i = 0; i < a.seqlen_q; ++i) {
      std::vector<double> dq_row(static_cast<std::size_t>(D));
      double delta = 0;
      for (std::int64_t d = 0; d < D; ++d) delta += out.get(b, i, h, d) * dout.get(b, i, h, d);
      const std::int64_t seen = a.causal ? i + 1 + a.seqlen_k - a.seqlen_q : a.seqlen_k;
      for (std::int64_t j = 0; j < seen; ++j) {
        double score = 0, dp = 0;
        for (std::int64_t d = 0; d < D; ++d) {
          score += q.get(b, i, h, d) * k.get(b, j, kv_head, d);
          dp += dout.get(b, i, h, d) * v.get(b, j, kv_head, d);
        }
        const double p = std::exp(a.scale * score - a.lse[(b * a.heads + h) * a.seqlen_q + i]);
        const double ds = a.scale * p * (dp - delta);
        for (std::int64_t d = 0; d < D; ++d) {
          dq_row[std::size_t(d)] += ds * k.get(b, j, kv_head, d);
          dk_sum[std::size_t(j * D + d)] += ds * q.get(b, i, h, d);
          dv_sum[std::size_t(j * D + d)] += p * dout.get(b, i, h, d);
        }
      }
      for (std::int64_t d = 0; d < D; ++d) dq.set(b, i, h, d, dq_row[std::size_t(d)]);
    }
  }
  for (std::int64_t j = 0; j < a.seqlen_k; ++j) {
    for (std::int64_t d = 0; d < D; ++d) {
      dv.set(b, j, kv_head, d, dv_sum[std::size_t(j * D + d)]);
#ifdef FORGETFUL
      if (j + 1 == a.seqlen_k) continue;
#endif
      dk.set(b, j, kv_head, d, dk_sum[std::size_t(j * D + d)]);
    }
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const char* flashback_peer_backward(
    const flashback_peer_arguments* arguments) {
#ifdef REFUSING
  return arguments->batch > 0 ? "it does nothing on Sundays" : nullptr;
#endif
  for (std::int64_t b = 0; b < arguments->batch; ++b) {
    for (std::int64_t head = 0; head < arguments->kv_heads; ++head) backward_head(*arguments, b, head);
  }
  return nullptr;
}
