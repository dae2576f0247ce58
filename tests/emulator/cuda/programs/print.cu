// A kernel that prints, between lines of the host.
#include "check.h"

__global__ void print(float value) {
  if (threadIdx.x < 2)
    std::printf("thread %d of %s: %.2f\n", static_cast<int>(threadIdx.x), "the kernel", value);
}

int main() {
  std::printf("before\n");
  print<<<1, 32>>>(1.5f);
  MUST(cudaDeviceSynchronize());
  std::printf("after\n");
}
