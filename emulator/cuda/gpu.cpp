#include "emulator/cuda/gpu.h"

#include <cuda.h>

#include "emulator/machine/address_space.h"

namespace flashback::emulator::cuda {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

// clang-format off
constexpr Gpu kGpus[] = {
    {"b200", "NVIDIA B200", Arch::kSm100, 10, 0, 182630 * kMebibyte, 1965000, 3996000, 8192, 132644864, 82903040, 4},
    {"h200", "NVIDIA H200", Arch::kSm90,   9, 0, 143156 * kMebibyte, 1980000, 3201000, 6144,  62914560, 39321600, 3},
};
// clang-format on

}  // namespace

const Gpu* find_gpu(std::string_view key) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.key == key) return &gpu;
  }
  return nullptr;
}

bool gpu_attribute(const Gpu& gpu, int attribute, int* value) {
  const auto of = [&]() -> int {
    switch (attribute) {
      // Launches.
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        return 1024;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        return 64;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        return 0x7fffffff;
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        return 65535;
      case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
      case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
        return 1;

      // A multiprocessor.
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return usual_multiprocessors(gpu.arch);
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return gpu.capability_major;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return gpu.capability_minor;
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return 2048;
      case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        return 32;
      case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        return 65536;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        return kSharedBytesWithoutOptIn;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return kSharedLimit;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return 233472;
      case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        return kSharedBase;
      case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
        return 1;
      case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return gpu.clock_khz;
      case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        return 2;

      // Memory.
      case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        return 65536;
      case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        return 0x7fffffff;
      case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return gpu.l2_bytes;
      case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
        return gpu.persisting_l2_bytes;
      case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
        return 128 << 20;
      case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return gpu.memory_clock_khz;
      case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return gpu.memory_bus_bits;
      case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
        return 512;
      case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
        return 32;
      case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
      case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
      case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
      case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        return 1;

      // The device among others.
      case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
      case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        return 1;
      case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return gpu.copy_engines;
      case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        return 4;
      case CU_DEVICE_ATTRIBUTE_NUMA_ID:
      case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        return -1;

      default:  // textures, surfaces, interoperation, virtual memory management: none here
        return 0;
    }
  };
  if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return false;
  *value = of();
  return true;
}

}  // namespace flashback::emulator::cuda
