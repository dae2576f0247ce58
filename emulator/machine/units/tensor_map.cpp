#include "emulator/machine/units/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace flashback::emulator {
namespace {

std::uint32_t bytes_of(MapType type) {
  constexpr std::uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return kBytes[static_cast<std::size_t>(type)];
}

MapType map_type(ElementType type) {
  switch (type) {
    case ElementType::kBf16:
      return MapType::kBf16;
    case ElementType::kF16:
      return MapType::kF16;
    case ElementType::kF32:
      return MapType::kF32;
    case ElementType::kF32Ftz:
      return MapType::kF32Ftz;
    case ElementType::kTf32:
      return MapType::kTf32;
    case ElementType::kTf32Ftz:
      return MapType::kTf32Ftz;
  }
  return MapType::kBf16;
}

MapSwizzle map_swizzle(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return MapSwizzle::kNone;
    case Swizzle::k32:
      return MapSwizzle::k32;
    case Swizzle::k64:
      return MapSwizzle::k64;
    case Swizzle::k128:
      return MapSwizzle::k128;
  }
  return MapSwizzle::kNone;
}

}  // namespace

Status encode_tensor_map(const TiledTensor& tensor, void* map) {
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) {
    return invalid(
        fmt::format("the tensor map is written to {}; its address must be a multiple of 64", fmt::ptr(map)));
  }
  if (tensor.rank < 1 || tensor.rank > 5) {
    return invalid(fmt::format("the tensor map has rank {}; 1 to 5 are accepted", tensor.rank));
  }
  if (tensor.base == 0 || tensor.base % 16 != 0) {
    return invalid(fmt::format("the tensor starts at {:#x}; its address must be a multiple of 16 and not 0",
                               tensor.base));
  }
  const std::uint32_t element = bytes_of(tensor.type);
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] == 0 || tensor.dims[i] > std::uint64_t{1} << 32) {
      return invalid(
          fmt::format("dimension {} of the tensor is {}; 1 to 2^32 are accepted", i, tensor.dims[i]));
    }
    if (tensor.box[i] == 0 || tensor.box[i] > 256) {
      return invalid(fmt::format("extent {} of the box is {}; 1 to 256 are accepted", i, tensor.box[i]));
    }
  }
  for (int i = 0; i + 1 < tensor.rank; ++i) {
    if (tensor.strides[i] % 16 != 0 || tensor.strides[i] >= std::uint64_t{1} << 40) {
      return invalid(
          fmt::format("the stride of dimension {} is {} bytes; it must be a multiple of 16 below 2^40", i + 1,
                      tensor.strides[i]));
    }
  }
  const std::uint32_t inner = tensor.box[0] * element;
  if (inner % 16 != 0) {
    return invalid(
        fmt::format("the box is {} elements of {} bytes wide; its width in bytes must be a multiple of 16",
                    tensor.box[0], element));
  }
  if (const std::uint32_t pattern = swizzle_bytes(tensor.swizzle); pattern != 0 && inner > pattern) {
    return invalid(fmt::format("the box is {} bytes wide; with a swizzle of {} bytes it may be {} at most",
                               inner, pattern, pattern));
  }

  auto* out = new (map) TensorMap{};
  out->magic = TensorMap::kMagic;
  out->element_bytes = static_cast<std::uint8_t>(element);
  out->type = tensor.type;
  out->swizzle = tensor.swizzle;
  out->rank = static_cast<std::uint8_t>(tensor.rank);
  out->base = tensor.base;
  std::copy_n(tensor.strides, 4, out->strides);
  for (int i = 0; i < 5; ++i) {
    out->dims[i] = i < tensor.rank ? tensor.dims[i] : 1;
    out->box[i] = static_cast<std::uint16_t>(i < tensor.rank ? tensor.box[i] : 1);
  }
  return {};
}

Status encode_tensor_map(const TensorMapRequest& request, void* map) {
  TiledTensor tensor;
  tensor.base = request.base;
  tensor.type = map_type(request.type);
  tensor.swizzle = map_swizzle(request.swizzle);
  tensor.rank = request.rank;
  std::copy_n(request.dims, 5, tensor.dims);
  std::copy_n(request.strides, 4, tensor.strides);
  std::copy_n(request.box, 5, tensor.box);
  return encode_tensor_map(tensor, map);
}

}  // namespace flashback::emulator
