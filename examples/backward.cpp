// Gradients of attention from C++, on the emulator: no GPU and no CUDA toolkit.
//
//   c++ -std=c++17 backward.cpp -lflashback -o backward && ./backward
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

#include "flashback/flashback.hpp"

namespace {

constexpr std::int64_t kBatch = 1, kHeads = 2, kRows = 100, kChannels = 64;

using Bf16 = std::uint16_t;  // the upper half of a float

Bf16 to_bf16(float value) {
  std::uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return static_cast<Bf16>(word >> 16);  // cuts the lower half off
}

float from_bf16(Bf16 bits) {
  const std::uint32_t word = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

std::size_t at(std::int64_t row, std::int64_t head, std::int64_t channel) {
  return static_cast<std::size_t>((row * kHeads + head) * kChannels + channel);
}

std::vector<Bf16> waves(float pitch) {
  std::vector<Bf16> tensor(kRows * kHeads * kChannels);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = to_bf16(std::sin(pitch * static_cast<float>(i)));
  return tensor;
}

// out = softmax(q k^T / 8, causal) v and the logarithm of the softmax's denominator, which a training step
// keeps.
void forward(const std::vector<Bf16>& q, const std::vector<Bf16>& k, const std::vector<Bf16>& v,
             std::vector<Bf16>& out, std::vector<float>& lse) {
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      std::vector<float> weights(kRows);
      float sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        float score = 0;
        for (std::int64_t c = 0; c < kChannels; ++c)
          score += from_bf16(q[at(i, head, c)]) * from_bf16(k[at(j, head, c)]);
        sum += weights[j] = std::exp(score / 8);
      }
      lse[head * kRows + i] = std::log(sum);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        float value = 0;
        for (std::int64_t j = 0; j <= i; ++j) value += weights[j] / sum * from_bf16(v[at(j, head, c)]);
        out[at(i, head, c)] = to_bf16(value);
      }
    }
  }
}

int run() {
  const std::vector<Bf16> q = waves(1.0f), k = waves(1.7f), v = waves(2.9f), dout = waves(0.3f);
  std::vector<Bf16> out(q.size()), dv(q.size());
  std::vector<float> lse(kHeads * kRows);
  forward(q, k, v, out, lse);

  const auto device = flashback::Device::emulator("sm100");
  const auto put = [&](const auto& host) {
    using T = std::decay_t<decltype(host[0])>;
    return flashback::Buffer<T>::of(device, host);
  };
  const auto d_q = put(q), d_k = put(k), d_v = put(v), d_out = put(out), d_dout = put(dout);
  const auto d_lse = put(lse);
  const flashback::Buffer<Bf16> d_dq(device, q.size()), d_dk(device, q.size()), d_dv(device, q.size());

  const auto packed = [](const flashback::Buffer<Bf16>& buffer) {
    return flashback::packed(buffer.data(), kRows, kHeads, kChannels);
  };
  auto a = flashback::backward_arguments();
  a.dtype = FLASHBACK_BF16;
  a.batch = kBatch;
  a.heads = a.kv_heads = kHeads;
  a.seqlen_q = a.seqlen_k = kRows;
  a.head_dim = kChannels;
  a.causal = 1;
  a.q = packed(d_q);
  a.k = packed(d_k);
  a.v = packed(d_v);
  a.out = packed(d_out);
  a.dout = packed(d_dout);
  a.lse = flashback::packed_lse(d_lse.data(), kHeads, kRows);
  a.dq = packed(d_dq);
  a.dk = packed(d_dk);
  a.dv = packed(d_dv);

  const flashback::Buffer<std::byte> workspace(device, flashback::backward_workspace(device, a));
  a.workspace = workspace.data();
  a.workspace_bytes = workspace.bytes();

  flashback::backward(device, a);
  d_dv.download(dv);
  device.wait();

  // The rows of a softmax sum to 1, so over all keys dV sums to what dO sums to over all queries.
  float worst = 0;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t c = 0; c < kChannels; ++c) {
      float given = 0, got = 0;
      for (std::int64_t i = 0; i < kRows; ++i) {
        given += from_bf16(dout[at(i, head, c)]);
        got += from_bf16(dv[at(i, head, c)]);
      }
      worst = std::max(worst, std::abs(given - got));
    }
  }
  std::printf("dV sums to dO within %.4f over %d channels\n", worst, static_cast<int>(kHeads * kChannels));
  return worst < 0.1f ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const flashback::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
