// A kernel with an instruction that the emulator does not have, in a program that looks at no error.
#include "check.h"

__global__ void difference(int* out) {
  int result;
  asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(out[0]), "r"(out[1]), "r"(0));
  out[2] = result;
}

int main() {
  int* out;
  int result = 0;
  MUST(cudaMallocManaged(&out, 3 * sizeof *out));
  difference<<<1, 1>>>(out);
  const cudaError_t error = cudaMemcpy(&result, out + 2, sizeof result, cudaMemcpyDefault);
  std::printf("%s, result %d\n", cudaGetErrorName(error), result);
}
