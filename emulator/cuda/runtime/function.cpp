// What the runtime tells of a kernel: attributes, parameters, occupancy.
#include "emulator/cuda/occupancy.h"

#include "emulator/cuda/runtime/face.h"

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return answer([&] {
    require(attributes != nullptr);
    Function& function = function_of(kernel);
    const auto size = [&](int id) { return static_cast<size_t>(function.attribute(id)); };
    *attributes = {};
    attributes->maxThreadsPerBlock = function.attribute(0);
    attributes->sharedSizeBytes = size(1);
    attributes->constSizeBytes = size(2);
    attributes->localSizeBytes = size(3);
    attributes->numRegs = function.attribute(4);
    attributes->ptxVersion = function.attribute(5);
    attributes->binaryVersion = function.attribute(6);
    attributes->cacheModeCA = function.attribute(7);
    attributes->maxDynamicSharedSizeBytes = function.attribute(cudaFuncAttributeMaxDynamicSharedMemorySize);
    attributes->preferredShmemCarveout = function.attribute(cudaFuncAttributePreferredSharedMemoryCarveout);
    attributes->clusterDimMustBeSet = function.attribute(cudaFuncAttributeClusterDimMustBeSet);
    attributes->requiredClusterWidth = function.attribute(cudaFuncAttributeRequiredClusterWidth);
    attributes->requiredClusterHeight = function.attribute(cudaFuncAttributeRequiredClusterHeight);
    attributes->requiredClusterDepth = function.attribute(cudaFuncAttributeRequiredClusterDepth);
    attributes->nonPortableClusterSizeAllowed =
        function.attribute(cudaFuncAttributeNonPortableClusterSizeAllowed);
    attributes->clusterSchedulingPolicyPreference =
        function.attribute(cudaFuncAttributeClusterSchedulingPolicyPreference);
  });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return answer([&] { function_of(kernel).set_attribute(attribute, value); });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                            int device) {
  return answer([&] {
    require_device(device);
    function_of(kernel).set_attribute(attribute, value);
  });
}

// Nothing has a cache here.
cudaError_t cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache) {
  return answer([&] { function_of(kernel); });
}

cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  return answer([&] { give(name, function_of(kernel).name().c_str()); });
}

cudaError_t cudaFuncGetParamInfo(const void* kernel, size_t index, size_t* offset, size_t* bytes) {
  return answer([&] {
    const auto& parameters = function_of(kernel).program().parameters;
    require(index < parameters.size());
    give(offset, parameters[index].offset);
    if (bytes != nullptr) *bytes = parameters[index].bytes;
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return answer([&] { give(function, reinterpret_cast<cudaFunction_t>(&function_of(symbol))); });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return answer([&] { give(kernel, reinterpret_cast<cudaKernel_t>(&function_of(symbol))); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t shared_bytes) {
  return answer([&] {
    require(threads > 0);
    give(blocks, resident_ctas(&function_of(kernel), static_cast<unsigned>(threads), shared_bytes));
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* kernel, int blocks,
                                                      int threads) {
  return answer([&] {
    require(threads > 0);
    give(bytes, available_shared_bytes(&function_of(kernel), static_cast<unsigned>(threads), blocks));
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* config) {
  return answer([&] {
    require(config != nullptr);
    unsigned ctas = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaLaunchAttribute& attribute = config->attrs[i];
      if (attribute.id != cudaLaunchAttributeClusterDimension) continue;
      ctas = attribute.val.clusterDim.x * attribute.val.clusterDim.y * attribute.val.clusterDim.z;
    }
    const dim3& block = config->blockDim;
    give(clusters, resident_clusters(&function_of(kernel), block.x * block.y * block.z,
                                     config->dynamicSmemBytes, ctas));
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* ctas, const void* kernel, const cudaLaunchConfig_t*) {
  return answer([&] { give(ctas, largest_cluster(&function_of(kernel))); });
}
