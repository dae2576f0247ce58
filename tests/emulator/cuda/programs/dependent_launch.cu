// A launch that may begin before the one it depends on has ended: what that one writes after it has let its
// dependents go is seen behind griddepcontrol.wait.
#include "check.h"

constexpr unsigned kThreads = 128, kCtas = 8;

__global__ void produce(int* data) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = static_cast<int>(3 * i + 1);
}

__global__ void consume(const int* data, int* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  out[i] = data[kThreads * kCtas - 1 - i];
}

int main() {
  int *data, *out;
  MUST(cudaMalloc(&data, kThreads * kCtas * sizeof *data));
  MUST(cudaMallocManaged(&out, kThreads * kCtas * sizeof *out));
  produce<<<kCtas, kThreads>>>(data);
  cudaLaunchConfig_t config = {};
  config.gridDim = kCtas;
  config.blockDim = kThreads;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  MUST(cudaLaunchKernelEx(&config, consume, const_cast<const int*>(data), out));
  MUST(cudaDeviceSynchronize());
  int wrong = 0;
  for (unsigned i = 0; i < kThreads * kCtas; ++i)
    wrong += out[i] != static_cast<int>(3 * (kThreads * kCtas - 1 - i) + 1);
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
