// A tile of rows by tensor map.
#pragma once

#include "kernels/shared/at_row.cuh"
#include "kernels/tile/operand.h"

namespace flashback::shared {

// All slabs of 64 channels. `full` expects their bytes.
template <int slabs, class Slab>
__device__ void load_slabs(Slab (&to)[slabs], const TensorMapBytes& map, ptx::Coordinates5 at,
                           ptx::Barrier& full) {
#pragma unroll
  for (int slab = 0; slab < slabs; ++slab) {
    at.d = slab * tile::kRowElements;
    load_tensor(&to[slab], &map, at, full);
  }
}

// The same, and nothing else is expected.
template <int slabs, class Slab>
__device__ void load_tile(Slab (&to)[slabs], const TensorMapBytes& map, const ptx::Coordinates5& at,
                          ptx::Barrier& full) {
  arrive_and_expect(full, sizeof(to));
  load_slabs(to, map, at, full);
}

}  // namespace flashback::shared
