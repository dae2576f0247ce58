// What the host tells the two small kernels around the main one. Plain C++.
#pragma once

#include <cstdint>

namespace flashback::common {

// A 16-bit tensor (batch, row, head, d) by its strides in elements; d is contiguous. Rows are read sixteen
// bytes at a time: the address and the strides are multiples of that.
struct View {
  void* data;
  std::int64_t batch_stride, row_stride, head_stride;
};

inline constexpr int kHeadDim = 64;
inline constexpr int kTileRows = 128;
inline constexpr int kThreads = 256;
inline constexpr float kLog2e = 1.4426950408889634f;

// preprocess: one CTA of 256 threads for each 128-row tile (x), head (y) and batch (z).
//   delta[row] = sum_d dO * O;  lse_log2 = lse * log2(e), -inf -> 0; rows past the end: +inf and 0; dq_accum
//   = 0.
struct PreprocessParameters {
  View out, dout;
  const float* lse;  // natural log, (batch, head, row)
  std::int64_t lse_batch_stride, lse_head_stride;
  float* lse_log2;  // [batch][head][q_rows_padded]
  float* delta;     // the same
  float* dq_accum;  // [batch][head][q_rows_padded * head_dim]
  std::int32_t heads, q_rows, q_rows_padded;
};

// postprocess: dq = scale * dq_accum in 16 bit, one CTA of 256 threads for each 128-row tile (x), head (y),
// batch (z).
struct PostprocessParameters {
  const float* dq_accum;
  View dq;
  float scale;
  std::int32_t heads, q_rows, q_rows_padded;
};

}  // namespace flashback::common
