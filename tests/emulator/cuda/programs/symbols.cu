// Variables of the module: constant, device and managed memory, by copies and by address.
#include "check.h"

__constant__ float factors[4] = {1, 2, 3, 4};
__device__ int counter = 40;
__managed__ int managed = 5;

__global__ void use(float* out) {
  out[threadIdx.x] = factors[threadIdx.x % 4];
  atomicAdd(&counter, 1);
  if (threadIdx.x == 0) managed += 7;
}

int main() {
  float* out;
  MUST(cudaMalloc(&out, 64 * sizeof *out));
  const float new_factors[2] = {20, 30};
  MUST(cudaMemcpyToSymbol(factors, new_factors, sizeof new_factors, sizeof(float)));
  std::printf("managed %d\n", managed);
  use<<<1, 64>>>(out);
  MUST(cudaDeviceSynchronize());
  int count;
  MUST(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  int* address;
  std::size_t bytes;
  MUST(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), counter));
  MUST(cudaGetSymbolSize(&bytes, factors));
  int by_address;
  MUST(cudaMemcpy(&by_address, address, sizeof by_address, cudaMemcpyDeviceToHost));
  float factor[4];
  MUST(cudaMemcpy(factor, out, sizeof factor, cudaMemcpyDeviceToHost));
  std::printf("counter %d and %d, managed %d, %zu bytes, factors %g %g %g %g\n", count, by_address, managed,
              bytes, factor[0], factor[1], factor[2], factor[3]);
  SAY(cudaMemcpyToSymbol(factors, new_factors, sizeof new_factors, 12));
  SAY(cudaGetSymbolSize(&bytes, &bytes));
}
