// Functions of the driver by their names, asked of the runtime.
#include <cuda.h>

#include "emulator/cuda/runtime/face.h"

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return answer([&] {
    require(name != nullptr && function != nullptr);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result = cuGetProcAddress(name, function, static_cast<int>(version), flags, &found);
    if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    // A name that is not there is the status's to tell; without one it is an error.
    require(result == CUDA_SUCCESS || (result == CUDA_ERROR_NOT_FOUND && status != nullptr), Error(result));
  });
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, status);
}
