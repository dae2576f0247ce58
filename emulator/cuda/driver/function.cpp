// What the driver tells of a kernel: attributes, parameters, occupancy.
#include "emulator/cuda/driver/function.h"

#include "emulator/cuda/occupancy.h"

namespace flashback::emulator::cuda::driver {
namespace {

void give_parameter(const void* handle, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  const auto& parameters = function_of(handle).program().parameters;
  require(index < parameters.size());
  give(offset, parameters[index].offset);
  if (bytes != nullptr) *bytes = parameters[index].bytes;
}

unsigned threads_of(const CUlaunchConfig& config) {
  return config.blockDimX * config.blockDimY * config.blockDimZ;
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute id, CUfunction function) {
  return answer_in_context([&] { give(value, function_of(function).attribute(id)); });
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute id, int value) {
  return answer_in_context([&] { function_of(function).set_attribute(id, value); });
}
// Nothing has a cache here.
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return answer_in_context([&] { function_of(function); });
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return answer_in_context(
      [&] { give(module, reinterpret_cast<CUmodule>(&function_of(function).module())); });
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  return answer([&] { give(name, function_of(function).name().c_str()); });
}
CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  return answer([&] { give_parameter(function, index, offset, bytes); });
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return answer([&] {
    function_of(function);
    give(state, CU_FUNCTION_LOADING_STATE_LOADED);
  });
}
CUresult cuFuncLoad(CUfunction function) {
  return answer([&] { function_of(function).program(); });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return answer_in_context([&] { give(function, reinterpret_cast<CUfunction>(&function_of(kernel))); });
}
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return answer([&] { give(library, reinterpret_cast<CUlibrary>(&function_of(kernel).module())); });
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute id, CUkernel kernel, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(value, function_of(kernel).attribute(id));
  });
}
CUresult cuKernelSetAttribute(CUfunction_attribute id, int value, CUkernel kernel, CUdevice device) {
  return answer([&] {
    require_device(device);
    function_of(kernel).set_attribute(id, value);
  });
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice device) {
  return answer([&] {
    require_device(device);
    function_of(kernel);
  });
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return answer([&] { give(name, function_of(kernel).name().c_str()); });
}
CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  return answer([&] { give_parameter(kernel, index, offset, bytes); });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     std::size_t shared_bytes) {
  return answer_in_context([&] {
    require(threads > 0);
    give(blocks, resident_ctas(&function_of(function), static_cast<unsigned>(threads), shared_bytes));
  });
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              std::size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction function, int blocks,
                                                 int threads) {
  return answer_in_context([&] {
    require(threads > 0);
    give(bytes, available_shared_bytes(&function_of(function), static_cast<unsigned>(threads), blocks));
  });
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  return answer_in_context([&] {
    require(config != nullptr);
    unsigned ctas = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const CUlaunchAttribute& attribute = config->attrs[i];
      if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
      ctas = attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z;
    }
    give(clusters,
         resident_clusters(&function_of(function), threads_of(*config), config->sharedMemBytes, ctas));
  });
}
CUresult cuOccupancyMaxPotentialClusterSize(int* ctas, CUfunction function, const CUlaunchConfig*) {
  return answer_in_context([&] { give(ctas, largest_cluster(&function_of(function))); });
}
