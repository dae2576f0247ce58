// The device, of which there is one.
#include <algorithm>
#include <cstring>

#include "emulator/cuda/runtime/face.h"
#include "emulator/cuda/version.h"

namespace flashback::emulator::cuda::runtime {
namespace {

int attribute(cudaDeviceAttr id) {
  int value = 0;
  require(gpu_attribute(process().gpu, id, &value));
  return value;
}

size_t size_attribute(cudaDeviceAttr id) {
  return static_cast<size_t>(attribute(id));
}

cudaDeviceProp properties() {
  const Gpu& gpu = process().gpu;
  cudaDeviceProp p = {};
  std::strncpy(p.name, gpu.name, sizeof p.name - 1);
  std::strncpy(p.uuid.bytes, "emulated", sizeof p.uuid.bytes);
  p.totalGlobalMem = gpu.memory_bytes;
  p.sharedMemPerBlock = size_attribute(cudaDevAttrMaxSharedMemoryPerBlock);
  p.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  p.warpSize = attribute(cudaDevAttrWarpSize);
  p.memPitch = size_attribute(cudaDevAttrMaxPitch);
  p.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  p.maxThreadsDim[0] = attribute(cudaDevAttrMaxBlockDimX);
  p.maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimY);
  p.maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ);
  p.maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
  p.maxGridSize[1] = attribute(cudaDevAttrMaxGridDimY);
  p.maxGridSize[2] = attribute(cudaDevAttrMaxGridDimZ);
  p.totalConstMem = size_attribute(cudaDevAttrTotalConstantMemory);
  p.major = attribute(cudaDevAttrComputeCapabilityMajor);
  p.minor = attribute(cudaDevAttrComputeCapabilityMinor);
  p.textureAlignment = size_attribute(cudaDevAttrTextureAlignment);
  p.texturePitchAlignment = size_attribute(cudaDevAttrTexturePitchAlignment);
  p.surfaceAlignment = size_attribute(cudaDevAttrSurfaceAlignment);
  p.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  p.canMapHostMemory = attribute(cudaDevAttrCanMapHostMemory);
  p.concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
  p.ECCEnabled = attribute(cudaDevAttrEccEnabled);
  p.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  p.unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing);
  p.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  p.l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  p.persistingL2CacheMaxSize = attribute(cudaDevAttrMaxPersistingL2CacheSize);
  p.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  p.streamPrioritiesSupported = attribute(cudaDevAttrStreamPrioritiesSupported);
  p.globalL1CacheSupported = attribute(cudaDevAttrGlobalL1CacheSupported);
  p.localL1CacheSupported = attribute(cudaDevAttrLocalL1CacheSupported);
  p.sharedMemPerMultiprocessor = size_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  p.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  p.managedMemory = attribute(cudaDevAttrManagedMemory);
  p.concurrentManagedAccess = attribute(cudaDevAttrConcurrentManagedAccess);
  p.computePreemptionSupported = attribute(cudaDevAttrComputePreemptionSupported);
  p.canUseHostPointerForRegisteredMem = attribute(cudaDevAttrCanUseHostPointerForRegisteredMem);
  p.cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
  p.sharedMemPerBlockOptin = size_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  p.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  p.accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
  p.reservedSharedMemPerBlock = size_attribute(cudaDevAttrReservedSharedMemoryPerBlock);
  p.hostRegisterSupported = attribute(cudaDevAttrHostRegisterSupported);
  p.memoryPoolsSupported = attribute(cudaDevAttrMemoryPoolsSupported);
  p.clusterLaunch = attribute(cudaDevAttrClusterLaunch);
  p.deviceNumaId = attribute(cudaDevAttrNumaId);
  p.hostNumaId = attribute(cudaDevAttrHostNumaId);
  return p;
}

constexpr const char* kPciBusId = "0000:00:00.0";

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaGetDeviceCount(int* count) {
  return answer([&] { give(count, 1); });
}

cudaError_t cudaGetDevice(int* device) {
  return answer([&] { give(device, 0); });
}

cudaError_t cudaSetDevice(int device) {
  return answer([&] { require_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return cudaGetDevice(device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return answer([&] {
    require_device(device);
    give(properties, runtime::properties());
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr id, int device) {
  return answer([&] {
    require_device(device);
    give(value, attribute(id));
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return answer([&] {
    require_device(device);
    require(id != nullptr && length > static_cast<int>(std::strlen(kPciBusId)));
    std::strcpy(id, kPciBusId);
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return answer([&] {
    require(id != nullptr);
    require(std::strcmp(id, kPciBusId) == 0, Error::kInvalidDevice);
    give(device, 0);
  });
}

// Everything is done when its call returns.
cudaError_t cudaDeviceSynchronize() {
  return answer([] {});
}

// Memory stays, unlike a GPU's: what the program still holds is given back when it ends.
cudaError_t cudaDeviceReset() {
  return answer([] {});
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return answer([] {});
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return answer([&] { give(flags, unsigned{cudaDeviceScheduleAuto}); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return answer([&] {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return answer([&] { give(value, process().limits.get(limit)); });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return answer([&] { process().limits.set(limit, value); });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return answer([] {});
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return answer([&] { give(config, cudaFuncCachePreferNone); });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return answer([&] {
    require_device(device);
    require_device(peer);
    give(can, 0);
  });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return answer([] {});
}

cudaError_t cudaDriverGetVersion(int* version) {
  return answer([&] { give(version, kDriverVersion); });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return answer([&] { give(version, CUDART_VERSION); });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

extern "C" {  // of cuda_profiler_api.h; nobody profiles

cudaError_t cudaProfilerStart() {
  return answer([] {});
}

cudaError_t cudaProfilerStop() {
  return answer([] {});
}

}  // extern "C"
