// Entries, the functions that the host launches: how one is declared, and what it begins with.
#pragma once

#include <cstddef>

#include "kernels/shared/dtype.h"
#include "kernels/shared/mask.h"
#include "kernels/tile/descriptor.h"

// `bounds` are those of __launch_bounds__, in parentheses; after Parameters comes the function.
#define FLASHBACK_ENTRY(name, bounds, Parameters, ...)                                                      \
  extern "C" __global__ __launch_bounds__ bounds void name(const __grid_constant__ Parameters parameters) { \
    __VA_ARGS__(parameters);                                                                                \
  }

// entry(name, fields of its configuration) for every type, or type and mask; names are made of the fields.
#define FLASHBACK_EACH_TYPE(entry, name, ...)                        \
  entry(name##_bf16, __VA_ARGS__, ::flashback::shared::Dtype::kBf16) \
      entry(name##_fp16, __VA_ARGS__, ::flashback::shared::Dtype::kF16)
#define FLASHBACK_EACH_MASK(entry, name, ...)                               \
  entry(name##_dense, __VA_ARGS__, ::flashback::shared::Mask::kDense)       \
      entry(name##_causal, __VA_ARGS__, ::flashback::shared::Mask::kCausal) \
          entry(name##_window, __VA_ARGS__, ::flashback::shared::Mask::kWindow)
#define FLASHBACK_EACH_TYPE_AND_MASK(entry, name, ...)                                    \
  FLASHBACK_EACH_MASK(entry, name##_bf16, __VA_ARGS__, ::flashback::shared::Dtype::kBf16) \
  FLASHBACK_EACH_MASK(entry, name##_fp16, __VA_ARGS__, ::flashback::shared::Dtype::kF16)

namespace flashback::shared {

// The CTA's dynamic shared memory. Tiles need its alignment, and the launch gives it.
template <class SharedMemory>
__device__ SharedMemory& dynamic_shared_memory() {
  extern __shared__ __align__(tile::kGroupBytes) std::byte dynamic_shared[];
  return reinterpret_cast<SharedMemory&>(dynamic_shared);
}

// The thread's warp in the CTA, known to be the same for all of it.
__device__ inline int this_warp() {
  return __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
}

}  // namespace flashback::shared
