// Two warps exchange values through shared memory, with a barrier between or without.
#include <cstdlib>

#include "check.h"

__global__ void exchange(int* out, bool wait) {
  __shared__ int words[64];
  words[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (wait) __syncthreads();
  out[threadIdx.x] = words[threadIdx.x ^ 32];
}

int main(int arguments, char** argument) {
  int* out;
  MUST(cudaMalloc(&out, 64 * sizeof(int)));
  exchange<<<1, 64>>>(out, arguments > 1);
  MUST(cudaDeviceSynchronize());
  std::printf("done\n");
  return arguments > 2 ? std::atoi(argument[2]) : 0;
}
