#include "emulator/machine/units/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace flashback::emulator {
namespace {

std::uint32_t bytes_of(ElementType type) {
  return type == ElementType::kF32 ? 4 : 2;
}

// Width of the swizzle pattern, which the inner box extent must not exceed; 0 without swizzle.
std::uint32_t pattern_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return 0;
    case Swizzle::k32:
      return 32;
    case Swizzle::k64:
      return 64;
    case Swizzle::k128:
      return 128;
  }
  return 0;
}

}  // namespace

Status encode_tensor_map(const TensorMapRequest& request, void* map) {
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) {
    return invalid(
        fmt::format("the tensor map is written to {}; its address must be a multiple of 64", fmt::ptr(map)));
  }
  if (request.rank < 1 || request.rank > 5) {
    return invalid(fmt::format("the tensor map has rank {}; 1 to 5 are accepted", request.rank));
  }
  if (request.base == 0 || request.base % 16 != 0) {
    return invalid(fmt::format("the tensor starts at {:#x}; its address must be a multiple of 16 and not 0",
                               request.base));
  }
  const std::uint32_t element = bytes_of(request.type);
  for (int i = 0; i < request.rank; ++i) {
    if (request.dims[i] == 0 || request.dims[i] > std::uint64_t{1} << 32) {
      return invalid(
          fmt::format("dimension {} of the tensor is {}; 1 to 2^32 are accepted", i, request.dims[i]));
    }
    if (request.box[i] == 0 || request.box[i] > 256) {
      return invalid(fmt::format("extent {} of the box is {}; 1 to 256 are accepted", i, request.box[i]));
    }
  }
  for (int i = 0; i + 1 < request.rank; ++i) {
    if (request.strides[i] % 16 != 0 || request.strides[i] >= std::uint64_t{1} << 40) {
      return invalid(
          fmt::format("the stride of dimension {} is {} bytes; it must be a multiple of 16 below 2^40", i + 1,
                      request.strides[i]));
    }
  }
  const std::uint32_t inner = request.box[0] * element;
  if (inner % 16 != 0) {
    return invalid(
        fmt::format("the box is {} elements of {} bytes wide; its width in bytes must be a multiple of 16",
                    request.box[0], element));
  }
  if (const std::uint32_t pattern = pattern_bytes(request.swizzle); pattern != 0 && inner > pattern) {
    return invalid(fmt::format("the box is {} bytes wide; with a swizzle of {} bytes it may be {} at most",
                               inner, pattern, pattern));
  }

  auto* out = new (map) TensorMap{};
  out->magic = TensorMap::kMagic;
  out->element_bytes = static_cast<std::uint8_t>(element);
  out->type = static_cast<std::uint8_t>(request.type);
  out->swizzle = static_cast<std::uint8_t>(request.swizzle);
  out->rank = static_cast<std::uint8_t>(request.rank);
  out->base = request.base;
  std::copy_n(request.strides, 4, out->strides);
  for (int i = 0; i < 5; ++i) {
    out->dims[i] = i < request.rank ? request.dims[i] : 1;
    out->box[i] = static_cast<std::uint16_t>(i < request.rank ? request.box[i] : 1);
  }
  return {};
}

}  // namespace flashback::emulator
