// The map of the sm_100a backward kernel: what is configured, where everything lives, who signals whom.
// Plain C++: the host plans from this file, the kernel is compiled from it.
#pragma once

#include <cstdint>

namespace flashback::sm100::backward {

enum class Dtype { kBf16, kF16 };
enum class Mask { kDense, kCausal };
// Where P and dS live: over S and dP, or in tensor memory of their own.
enum class TensorMemory { kAliased, kSplit };
// How the eight compute warps announce a finished store: all together (one barrier of 256 threads before each
// signal) or each warp for itself.
enum class Signal { kCta, kWarp };

struct Config {
  int head_dim;
  Dtype dtype;
  Mask mask;
  TensorMemory tensor_memory;
  Signal signal;
};

struct alignas(64) TensorMapBytes {
  std::uint64_t words[16];
};

// Everything a launch is told. Lengths in rows; q_rows and k_rows are the real ones, q_rows_padded is q_rows rounded up to
// the tile. lse_log2 and delta are [batch][head][q_rows_padded] fp32; dq_accum is [batch][head][q_rows_padded * head_dim] fp32 in
// the private order of kernels/shared/dq_order.h.
struct Parameters {
  TensorMapBytes q, k, v, dout;  // 16-bit loads: dims (d, row, head, batch), box d x 128 rows, 128-byte swizzle
  TensorMapBytes dk, dv;         // 16-bit stores: same dims, box 32 x 128 rows, 64-byte swizzle
  const float* lse_log2;
  const float* delta;
  float* dq_accum;
  float scale;       // softmax scale
  float scale_log2;  // softmax scale * log2(e)
  std::int32_t q_rows, k_rows, q_rows_padded;
  std::int32_t heads;  // query heads
};

}  // namespace flashback::sm100::backward
