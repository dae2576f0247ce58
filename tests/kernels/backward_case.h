// One attention backward on a workbench, without the library: inputs, a double-precision reference, the three
// launches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace flashback::testing {

inline std::uint16_t to_bf16(double x) {
  const float f = static_cast<float>(x);
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline double from_bf16(std::uint16_t x) {
  const std::uint32_t bits = std::uint32_t{x} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

struct Shape {
  int batch, heads, q_rows, k_rows;
  bool causal;

  std::size_t q_at(int b, int h, int row) const { return ((std::size_t(b) * q_rows + row) * heads + h) * 64; }
  std::size_t k_at(int b, int h, int row) const { return ((std::size_t(b) * k_rows + row) * heads + h) * 64; }
  std::size_t q_size() const { return q_at(batch, 0, 0); }
  std::size_t k_size() const { return k_at(batch, 0, 0); }
  bool visible(int row, int key) const { return !causal || key <= row + k_rows - q_rows; }
};

struct Inputs {
  std::vector<std::uint16_t> q, k, v, out, dout;  // bf16, (batch, row, head, d)
  std::vector<float> lse;                         // (batch, head, row)
  double scale;
};

struct Gradients {
  std::vector<std::uint16_t> dq, dk, dv;  // bf16, (batch, row, head, d)

  bool operator==(const Gradients&) const = default;
};

// Scores of a row and what softmax makes of them.
inline std::vector<double> softmax_row(const Shape& s, const Inputs& in, int b, int h, int row, double* lse) {
  std::vector<double> p(s.k_rows, 0.0);
  double largest = -INFINITY, sum = 0;
  for (int key = 0; key < s.k_rows; ++key) {
    if (!s.visible(row, key)) continue;
    for (int d = 0; d < 64; ++d)
      p[key] += from_bf16(in.q[s.q_at(b, h, row) + d]) * from_bf16(in.k[s.k_at(b, h, key) + d]);
    p[key] *= in.scale;
    largest = std::max(largest, p[key]);
  }
  for (int key = 0; key < s.k_rows; ++key) {
    p[key] = s.visible(row, key) ? std::exp(p[key] - largest) : 0;
    sum += p[key];
  }
  for (double& x : p) x = sum > 0 ? x / sum : 0;
  *lse = sum > 0 ? largest + std::log(sum) : -INFINITY;
  return p;
}

// Normal inputs, all scaled scores moved by `level`.
inline Inputs make_inputs(const Shape& s, unsigned seed, double level = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Inputs in;
  in.scale = 0.125;
  const auto fill = [&](std::vector<std::uint16_t>& x, std::size_t n) {
    x.resize(n);
    for (auto& e : x) e = to_bf16(normal(random));
  };
  fill(in.q, s.q_size());
  fill(in.k, s.k_size());
  fill(in.v, s.k_size());
  fill(in.dout, s.q_size());
  if (level != 0) {  // by a quarter of the channels: 0.125 * 16 * 8 * level / 16
    for (std::size_t i = 0; i < in.q.size(); ++i) in.q[i] = i % 64 < 16 ? to_bf16(8) : in.q[i];
    for (std::size_t i = 0; i < in.k.size(); ++i) in.k[i] = i % 64 < 16 ? to_bf16(level / 16) : in.k[i];
  }
  in.out.assign(s.q_size(), 0);
  in.lse.resize(std::size_t(s.batch) * s.heads * s.q_rows);
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      for (int row = 0; row < s.q_rows; ++row) {
        double lse;
        const std::vector<double> p = softmax_row(s, in, b, h, row, &lse);
        in.lse[(std::size_t(b) * s.heads + h) * s.q_rows + row] = static_cast<float>(lse);
        for (int d = 0; d < 64; ++d) {
          double o = 0;
          for (int key = 0; key < s.k_rows; ++key) o += p[key] * from_bf16(in.v[s.k_at(b, h, key) + d]);
          in.out[s.q_at(b, h, row) + d] = to_bf16(o);
        }
      }
    }
  }
  return in;
}

struct Exact {
  std::vector<double> dq, dk, dv;
};

// With `narrow`, what the kernel rounds to bf16 on its way (O, P, dS, the gradients) is rounded here too.
inline Exact reference(const Shape& s, const Inputs& in, bool narrow) {
  const auto round = [&](double x) { return narrow ? from_bf16(to_bf16(x)) : x; };
  Exact g{std::vector<double>(s.q_size()), std::vector<double>(s.k_size()), std::vector<double>(s.k_size())};
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      for (int row = 0; row < s.q_rows; ++row) {
        double lse;
        const std::size_t r = s.q_at(b, h, row);
        const std::vector<double> p = softmax_row(s, in, b, h, row, &lse);
        std::vector<double> dp(s.k_rows);
        double delta = 0;
        for (int key = 0; key < s.k_rows; ++key) {
          for (int d = 0; d < 64; ++d)
            dp[key] += from_bf16(in.dout[r + d]) * from_bf16(in.v[s.k_at(b, h, key) + d]);
          delta += p[key] * dp[key];
        }
        if (narrow) {
          delta = 0;
          for (int d = 0; d < 64; ++d) delta += from_bf16(in.dout[r + d]) * from_bf16(in.out[r + d]);
        }
        for (int key = 0; key < s.k_rows; ++key) {
          const std::size_t c = s.k_at(b, h, key);
          const double ds = round(p[key] * (dp[key] - delta)), prob = round(p[key]);
          for (int d = 0; d < 64; ++d) {
            g.dq[r + d] += in.scale * ds * from_bf16(in.k[c + d]);
            g.dk[c + d] += in.scale * ds * from_bf16(in.q[r + d]);
            g.dv[c + d] += prob * from_bf16(in.dout[r + d]);
          }
        }
      }
    }
  }
  for (auto* gradient : {&g.dq, &g.dk, &g.dv}) {
    for (double& x : *gradient) x = round(x);
  }
  return g;
}

}  // namespace flashback::testing
