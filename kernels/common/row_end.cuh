// What leaves a forward kernel: lse, and whole rows of O.
#pragma once

#include "kernels/common/forward.h"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/memory.cuh"
#include "kernels/tile/operand.h"

namespace flashback::common {

// What a row's sum and the sink make of O and lse: O is multiplied by `scale`; lse is a natural logarithm.
// `sum` is of exp2(score * scale_log2 - shift).
struct RowEnd {
  float scale, lse;

  __device__ RowEnd(const ForwardParameters& p, int head, float sum, float shift) {
    constexpr float kLn2 = 0.6931471805599453f;
    float factor = 1;
    if (p.sink) {
      const float sink = p.sink[head] * kLog2e, above = fmaxf(shift, sink);
      factor = ptx::exp2(shift - above);
      sum = fmaf(sum, factor, ptx::exp2(sink - above));
      shift = above;
    }
    scale = factor / sum;
    lse = (shift + ptx::log2(sum)) * kLn2;
  }
};

// Rows [first, first + rows) of a tile to `out`, where its first one goes; of `count` there are. By a warp:
// eight lanes a row, four rows at a time. The shared address `from` is that of the first one in a slab of 64
// channels.
template <int rows>
__device__ void store_whole_rows(const ForwardParameters& p, std::uint16_t* out, std::uint32_t from,
                                 int first, int count, int slab, int lane) {
  const int chunk = lane % 8, row = first + lane / 8;
  const int d = slab * tile::kRowElements + 8 * chunk;
  out += row * p.out.row_stride + d;
#pragma unroll 4
  for (int i = 0; i < rows; i += 4) {
    float4 x;  // eight channels
    ptx::load_shared(x, from + tile::OperandTile<rows>::chunk(i + lane / 8, chunk));
    if (row + i < count && d < p.head_dim) *reinterpret_cast<float4*>(out) = x;
    out += 4 * p.out.row_stride;
  }
}

}  // namespace flashback::common
