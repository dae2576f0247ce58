// The GPU as its driver describes it.
#include "check.h"

int main() {
  int count, version, value;
  MUST(cudaGetDeviceCount(&count));
  cudaDeviceProp p;
  MUST(cudaGetDeviceProperties(&p, 0));
  std::printf(
      "%d device: %s, %d.%d, %d multiprocessors, %zu bytes of shared memory (%zu with opt-in), L2 %d\n",
      count, p.name, p.major, p.minor, p.multiProcessorCount, p.sharedMemPerBlock, p.sharedMemPerBlockOptin,
      p.l2CacheSize);
  MUST(cudaDeviceGetAttribute(&value, cudaDevAttrMaxRegistersPerMultiprocessor, 0));
  MUST(cudaDriverGetVersion(&version));
  std::printf("%d registers, driver %d\n", value, version);
  std::size_t available, total;
  void* memory;
  MUST(cudaMalloc(&memory, 1 << 20));
  MUST(cudaMemGetInfo(&available, &total));
  std::printf("%zu bytes taken of %zu\n", total - available, total);
  SAY(cudaMalloc(&memory, total));
  MUST(cudaMalloc(&memory, total / 2));
  SAY(cudaMalloc(&memory, total / 2));
  (void)cudaGetLastError();
  SAY(cudaSetDevice(1));
  SAY(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0));
  std::printf("%s / %s\n", cudaGetErrorString(cudaErrorIllegalAddress),
              cudaGetErrorString(static_cast<cudaError_t>(12345)));
}
