// The GPUs that can be emulated, as their drivers describe them.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/device.h"

namespace flashback::emulator::cuda {

struct Gpu {
  std::string_view key;  // of --gpu
  const char* name;
  Arch arch;
  int capability_major, capability_minor;
  std::uint64_t memory_bytes;
  int clock_khz, memory_clock_khz, memory_bus_bits;
  int l2_bytes, persisting_l2_bytes;
  int copy_engines;
};

inline constexpr std::uint32_t kSharedBytesWithoutOptIn = 49152;

// Null for other words than b200 and h200.
const Gpu* find_gpu(std::string_view key);

// What cuDeviceGetAttribute and cudaDeviceGetAttribute answer: they number attributes alike. Features of the
// driver that are not provided are said to be absent, so that programs take their other way. False: no such
// attribute.
bool gpu_attribute(const Gpu& gpu, int attribute, int* value);

}  // namespace flashback::emulator::cuda
