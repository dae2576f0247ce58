// Tensor maps.
#include "emulator/cuda/tensor_map.h"

#include "emulator/cuda/driver/face.h"

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  return result_of(attempt([&] {
    encode_tiled(map, type, rank, base, dims, strides, box, element_strides, interleave, swizzle, promotion,
                 fill);
  }));
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* base) {
  return result_of(attempt([&] { replace_address(map, base); }));
}
