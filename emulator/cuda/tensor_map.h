// Tensor maps with the driver's arguments and its checks.
#pragma once

#include <cuda.h>

namespace flashback::emulator::cuda {

// Refuses what the driver refuses, with a sentence that says which rule is broken, and what the machine does
// not have.
void encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                  const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                  const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                  CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
void replace_address(CUtensorMap* map, void* base);

}  // namespace flashback::emulator::cuda
