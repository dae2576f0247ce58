// Ends in the fault that its argument names: the context is lost, and every later call says so.
#include <cassert>
#include <string_view>

#include "check.h"

__global__ void store(char* out, int at) {
  *reinterpret_cast<int*>(out + at) = 1;  // the line that the message must name
}

__global__ void claim(int value) {
  assert(value == 2);
}

__global__ void trap() {
  asm volatile("trap;");
}

int main(int, char** argv) {
  const std::string_view fault = argv[1];
  char* out;
  MUST(cudaMalloc(&out, 64));
  if (fault == "bounds") store<<<1, 1>>>(out, 64);
  if (fault == "alignment") store<<<1, 1>>>(out, 2);
  if (fault == "assertion") claim<<<1, 1>>>(1);
  if (fault == "trap") trap<<<1, 1>>>();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  SAY(cudaFree(out));
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  return 5;
}
