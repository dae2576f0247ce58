// What the host tells the small kernels around the main one. Plain C++. They are compiled for a head dim,
// which is that of the accumulators; tensors may have fewer channels.
#pragma once

#include <cstdint>

#include "kernels/shared/sequences.h"

namespace flashback::common {

// A tensor (batch, row, head, d) by its strides in elements; d is contiguous. Rows are read sixteen bytes at
// a time: the address and the strides are multiples of that. Packed sequences have a batch stride of 0.
struct View {
  void* data;
  std::int64_t batch_stride, row_stride, head_stride;
};

// The same without d, fp32, rows contiguous.
struct RowView {
  const float* data;
  std::int64_t batch_stride, head_stride;
};

// The same, written.
struct RowOutput {
  float* data;
  std::int64_t batch_stride, head_stride;
};

inline constexpr int kThreads = 256;
inline constexpr int kPostprocessRows = 128, kUnseenRows = 128;  // in memory, of a CTA
inline constexpr int kScheduleThreads = 1024;
inline constexpr float kLog2e = 1.4426950408889634f;

// schedule: one CTA. How many tiles there are before each sequence, of the rows in sight.
struct ScheduleParameters {
  shared::Sequences sequences;
  std::int32_t *q_first_tile, *k_first_tile;  // [batch + 1]
  std::int32_t q_tile_rows, k_tile_rows;
};

// preprocess: a CTA for each tile (x) and head (y) of query rows in sight.
//   delta[row] = sum_d dO * O - dlse;  lse_log2 = lse * log2(e).
//   A row with infinite lse, and rows past the end: lse_log2 = +inf, so that P = exp2(S - inf) = 0, and
//   delta = 0. dq_accum = 0. With a sink the tile's part of dsink.
struct PreprocessParameters {
  View out, dout;
  RowView lse;         // natural log
  RowView dlse;        // no data: 0
  const float* sink;   // [head], or null
  float* lse_log2;     // [head][all tiles], each as the layout says
  float* delta;        // the same
  float* dq_accum;     // the same
  float* dsink_parts;  // [head][all tiles]
  std::int32_t* zero;  // becomes 0; or null
  shared::Sequences sequences;
  std::int32_t head_dim;
};

// postprocess: a gradient out of its accumulator, scaled; a CTA for each 128 rows in memory of a batch (x)
// and head (y). Rows that are not in sight become zero.
struct PostprocessParameters {
  const float* accum;  // [head][all tiles], as the layout says; null: rows in sight are written already
  View gradient;
  float scale;
  shared::Sequences sequences;
  std::int32_t head_dim;
  bool of_keys;            // the rows are those of k, else of q
  bool fp32;               // the gradient is, else it is of the dtype
  bool accumulate;         // it is added to
  bool leave_unused_rows;  // rows that take no part stay as they are
};

// unseen: in the forward pass, a CTA for each 128 rows in memory of a batch (x) and head (y). Rows that see
// no key: out 0, lse -inf, or with a sink the sink's logit. The same without the sink for rows that take no
// part.
struct UnseenParameters {
  View out;
  RowOutput lse;      // no data: not wanted
  const float* sink;  // [head], or null
  shared::Sequences sequences;
  std::int32_t head_dim;
  bool leave_unused_rows;  // rows that take no part stay as they are
};

// sink: dsink of a head (x), from the parts of its tiles and the rows that see nothing but the sink.
struct SinkParameters {
  const float* dsink_parts;
  RowView lse, dlse;
  const float* sink;
  float* dsink;
  shared::Sequences sequences;
};

}  // namespace flashback::common
