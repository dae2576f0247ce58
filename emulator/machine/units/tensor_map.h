// The emulator's tensor map: 128 bytes of its own encoding, made and checked as the driver does it.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace flashback::emulator {

// Types of elements, numbered as the driver does.
enum class MapType : std::uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz
};

// How the chunks of a row change places, numbered as the driver does. k128Atom32: chunks of 32 bytes instead
// of 16.
enum class MapSwizzle : std::uint8_t { kNone, k32, k64, k128, k128Atom32 };

// Width of the pattern, which the inner box extent must not exceed; 0 without swizzle.
inline std::uint32_t swizzle_bytes(MapSwizzle swizzle) {
  constexpr std::uint32_t kBytes[] = {0, 32, 64, 128, 128};
  return kBytes[static_cast<std::uint8_t>(swizzle)];
}

struct alignas(64) TensorMap {
  static constexpr std::uint32_t kMagic = 0x50414d54;

  std::uint32_t magic;
  std::uint8_t element_bytes;
  MapType type;
  MapSwizzle swizzle;
  std::uint8_t rank;
  // Kept free: programs that know of a defect of old drivers clear bit 21 of this word after encoding.
  std::uint64_t reserved;
  std::uint64_t base;
  std::uint64_t strides[4];  // bytes, of dimensions 1 to 4
  std::uint64_t dims[5];
  std::uint16_t box[5];
  std::uint16_t unused[3];

  std::uint32_t box_bytes() const {
    std::uint32_t bytes = element_bytes;
    for (int i = 0; i < rank; ++i) bytes *= box[i];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) == 128);

// TensorMapRequest with all types of elements and more swizzles.
struct TiledTensor {
  Address base = 0;
  MapType type = MapType::kBf16;
  MapSwizzle swizzle = MapSwizzle::k128;
  int rank = 0;
  std::uint64_t dims[5] = {};
  std::uint64_t strides[4] = {};
  std::uint32_t box[5] = {};
};

// Writes the map of `tensor` to `map` (64-byte aligned), or says which rule it breaks.
Status encode_tensor_map(const TiledTensor& tensor, void* map);
Status encode_tensor_map(const TensorMapRequest& request, void* map);

}  // namespace flashback::emulator
