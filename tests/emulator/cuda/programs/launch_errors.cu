// Attributes of kernels, and launches that CUDA refuses.
#include "check.h"

__global__ void __launch_bounds__(128) bounded(int* out) {
  extern __shared__ int scratch[];
  scratch[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = scratch[blockDim.x - 1 - threadIdx.x];
}

cudaError_t launch(int* out, dim3 grid, dim3 block, std::size_t shared_bytes) {
  bounded<<<grid, block, shared_bytes>>>(out);
  return cudaGetLastError();
}

int main() {
  int* out;
  MUST(cudaMalloc(&out, 128 * sizeof *out));
  cudaFuncAttributes attributes;
  MUST(cudaFuncGetAttributes(&attributes, bounded));
  std::printf("at most %d threads, %zu and at most %d bytes of shared memory, PTX %d\n",
              attributes.maxThreadsPerBlock, attributes.sharedSizeBytes, attributes.maxDynamicSharedSizeBytes,
              attributes.ptxVersion);
  SAY(launch(out, 0, 32, 1024));
  SAY(launch(out, 1, 2048, 1024));
  SAY(launch(out, 1, 256, 1024));
  SAY(launch(out, 1, 128, 100000));
  SAY(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000));
  MUST(cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  (void)cudaGetLastError();
  SAY(launch(out, 1, 128, 100000));
  int blocks;
  MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 128, 100000));
  std::printf("%d blocks on a multiprocessor\n", blocks);
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 128;
  config.dynamicSmemBytes = 512;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  SAY(cudaLaunchKernelEx(&config, bounded, out));
  int first;
  MUST(cudaMemcpy(&first, out, sizeof first, cudaMemcpyDeviceToHost));
  std::printf("out[0] %d\n", first);
  SAY(cudaMemcpy(out, out + 128, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(out, &first, 1024, cudaMemcpyHostToDevice));
  SAY(cudaFree(out + 1));
  SAY(cudaFree(out));
  SAY(cudaFree(nullptr));
  SAY(cudaFuncSetAttribute(reinterpret_cast<const void*>(&first), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           1));
}
