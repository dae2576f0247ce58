#include "emulator/cuda/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/cuda/error.h"
#include "emulator/cuda/process.h"
#include "emulator/machine/units/tensor_map.h"

namespace flashback::emulator::cuda {
namespace {

MapType element_type(CUtensorMapDataType type) {
  require(type >= 0 && type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
  if (type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) {  // those of elements narrower than a byte
    refuse(Error::kNotSupported, fmt::format("a tensor map of data type {} is not provided", int{type}));
  }
  return static_cast<MapType>(type);
}

MapSwizzle swizzle_of(CUtensorMapSwizzle swizzle) {
  require(swizzle >= 0 && swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
  if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B) {
    refuse(Error::kNotSupported, fmt::format("a tensor map with swizzle {} is not provided", int{swizzle}));
  }
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B && process().gpu.arch == Arch::kSm90) {
    refuse(Error::kInvalidValue,
           "cuTensorMapEncodeTiled: a swizzle in chunks of 32 bytes is of Blackwell; a Hopper GPU takes "
           "NONE, 32B, 64B and 128B");
  }
  return static_cast<MapSwizzle>(swizzle);
}

}  // namespace

void encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                  const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                  const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                  CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  require(map != nullptr && dims != nullptr && box != nullptr && element_strides != nullptr);
  require(rank >= 1 && rank <= 5 && (rank == 1 || strides != nullptr));
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) {
    refuse(Error::kNotSupported, "a tensor map with interleaved layout is not provided");
  }
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
    refuse(Error::kNotSupported, "a tensor map that fills with NaN out of bounds is not provided");
  }
  if (std::any_of(element_strides, element_strides + rank, [](cuuint32_t stride) { return stride != 1; })) {
    refuse(Error::kNotSupported, "a tensor map with element strides other than 1 is not provided");
  }
  TiledTensor tensor;
  tensor.base = reinterpret_cast<Address>(base);
  tensor.type = element_type(type);
  tensor.swizzle = swizzle_of(swizzle);
  tensor.rank = static_cast<int>(rank);
  std::copy_n(dims, rank, tensor.dims);
  std::copy_n(box, rank, tensor.box);
  if (rank > 1) std::copy_n(strides, rank - 1, tensor.strides);
  if (const Status status = encode_tensor_map(tensor, map); !status.ok()) {
    refuse(Error::kInvalidValue, "cuTensorMapEncodeTiled: " + status.sentence());
  }
}

void replace_address(CUtensorMap* map, void* base) {
  require(map != nullptr && reinterpret_cast<std::uintptr_t>(base) % 16 == 0);
  reinterpret_cast<TensorMap*>(map)->base = reinterpret_cast<Address>(base);
}

}  // namespace flashback::emulator::cuda
