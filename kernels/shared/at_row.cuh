// Rows of ragged sequences by tensor map.
#pragma once

#include "kernels/ptx/tma.cuh"
#include "kernels/shared/sequences.h"

namespace flashback::shared {

// A row of a sequence in a map that ends its rows at side.rows: the last row of the sequence is put there, so
// that what follows it in memory is out of bounds, zero to loads and closed to stores. `shift` brings the
// address back to where the sequence is; without ragged sequences their end is that of the tensor.
__device__ inline ptx::Coordinates5 at_row(const Side& side, const Rows& rows, int row, int head, int batch,
                                           int d = 0) {
  return {d, side.rows - rows.count + row, head, side.cu_seqlens ? 0 : batch,
          side.ragged() ? rows.first + rows.count : 0};
}

}  // namespace flashback::shared
