// A peer in double precision on host memory, which is the emulator's device memory. FORGETFUL: one that does
// not write the last row of dk, or of out. REFUSING: one that does nothing but say so.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/peer.h"

namespace {

struct View {
  const flashback_peer_tensor& tensor;
  const bool fp16;

  std::uint16_t& bits(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t d) const {
    return static_cast<std::uint16_t*>(
        tensor.data)[b * tensor.batch_stride + row * tensor.row_stride + head * tensor.head_stride + d];
  }
  double get(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t d) const {
    const std::uint16_t word = bits(b, row, head, d);
    return fp16 ? double(std::bit_cast<_Float16>(word)) : std::bit_cast<float>(std::uint32_t{word} << 16);
  }
  void set(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t d, double value) const {
    const auto word = std::bit_cast<std::uint32_t>(float(value));
    bits(b, row, head, d) = fp16 ? std::bit_cast<std::uint16_t>(_Float16(value))
                                 : std::uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
};

// Where the rows of sequence `b` begin.
std::int64_t begin_of(const flashback_peer_arguments& a, std::int64_t b) {
  return a.cu_seqlens ? a.cu_seqlens[b] : b * a.seqlen_q;
}

float& lse_of(const flashback_peer_arguments& a, std::int64_t b, std::int64_t head, std::int64_t row) {
  return a.cu_seqlens ? a.lse[head * a.cu_seqlens[a.batch] + begin_of(a, b) + row]
                      : a.lse[(b * a.heads + head) * a.seqlen_q + row];
}

// The keys [first, end) that row i sees.
struct Keys {
  std::int64_t first, end;
};
Keys keys_seen(const flashback_peer_arguments& a, std::int64_t i) {
  const std::int64_t stands = i + a.seqlen_k - a.seqlen_q;
  return {a.window_left < 0 ? 0 : std::max<std::int64_t>(stands - a.window_left, 0),
          a.window_right < 0 ? a.seqlen_k : std::min(stands + a.window_right + 1, a.seqlen_k)};
}

double score_of(const flashback_peer_arguments& a, const View& q, const View& k, std::int64_t b,
                std::int64_t head, std::int64_t i, std::int64_t j) {
  double score = 0;
  for (std::int64_t d = 0; d < a.head_dim; ++d)
    score += q.get(b, i, head, d) * k.get(b, j, head / (a.heads / a.kv_heads), d);
  return a.scale * score;
}

void forward_row(const flashback_peer_arguments& a, std::int64_t b, std::int64_t head, std::int64_t i) {
  const bool fp16 = a.fp16 != 0;
  const View q{a.q, fp16}, k{a.k, fp16}, v{a.v, fp16}, out{a.out, fp16};
  std::vector<double> sums(static_cast<std::size_t>(a.head_dim));
  double sum = 0;
  const Keys keys = keys_seen(a, i);
  for (std::int64_t j = keys.first; j < keys.end; ++j) {
    const double weight = std::exp(score_of(a, q, k, b, head, i, j));
    sum += weight;
    for (std::int64_t d = 0; d < a.head_dim; ++d)
      sums[std::size_t(d)] += weight * v.get(b, j, head / (a.heads / a.kv_heads), d);
  }
  for (std::int64_t d = 0; d < a.head_dim; ++d) out.set(b, i, head, d, sums[std::size_t(d)] / sum);
  lse_of(a, b, head, i) = float(std::log(sum));
}

void backward_head(const flashback_peer_arguments& a, std::int64_t b, std::int64_t kv_head) {
  const bool fp16 = a.fp16 != 0;
  const View q{a.q, fp16}, k{a.k, fp16}, v{a.v, fp16}, out{a.out, fp16}, dout{a.dout, fp16};
  const View dq{a.dq, fp16}, dk{a.dk, fp16}, dv{a.dv, fp16};
  const std::int64_t D = a.head_dim, group = a.heads / a.kv_heads;
  std::vector<double> dk_sum(std::size_t(a.seqlen_k * D)), dv_sum(dk_sum.size());
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    for (std::int64_t i = 0; i < a.seqlen_q; ++i) {
      std::vector<double> dq_row(static_cast<std::size_t>(D));
      double delta = 0;
      for (std::int64_t d = 0; d < D; ++d) delta += out.get(b, i, h, d) * dout.get(b, i, h, d);
      const Keys keys = keys_seen(a, i);
      for (std::int64_t j = keys.first; j < keys.end; ++j) {
        double dp = 0;
        for (std::int64_t d = 0; d < D; ++d) dp += dout.get(b, i, h, d) * v.get(b, j, kv_head, d);
        const double p = std::exp(score_of(a, q, k, b, h, i, j) - lse_of(a, b, h, i));
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

#define PEER extern "C" __attribute__((visibility("default"))) const char*

PEER flashback_peer_backward(const flashback_peer_arguments* arguments) {
#ifdef REFUSING
  return arguments->batch > 0 ? "it does nothing on Sundays" : nullptr;
#endif
  for (std::int64_t b = 0; b < arguments->batch; ++b) {
    for (std::int64_t head = 0; head < arguments->kv_heads; ++head) backward_head(*arguments, b, head);
  }
  return nullptr;
}

PEER flashback_peer_forward(const flashback_peer_arguments* arguments) {
#ifdef REFUSING
  return arguments->batch > 0 ? "it does nothing on Sundays" : nullptr;
#endif
  for (std::int64_t b = 0; b < arguments->batch; ++b) {
    for (std::int64_t head = 0; head < arguments->heads; ++head) {
      for (std::int64_t row = 0; row < arguments->seqlen_q; ++row) {
#ifdef FORGETFUL
        if (row + 1 == arguments->seqlen_q) continue;
#endif
        forward_row(*arguments, b, head, row);
      }
    }
  }
  return nullptr;
}
