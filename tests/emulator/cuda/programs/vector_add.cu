// Three vectors, copies and fills in every direction. Exits with its argument when the sum is right, else
// with 1.
#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* sum, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  constexpr int kCount = 3001;
  std::vector<float> a(kCount), b(kCount), sum(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(2 * i + 1);
  }
  constexpr std::size_t kBytes = kCount * sizeof(float);
  float *device_a, *device_b, *device_sum;
  MUST(cudaMalloc(&device_a, kBytes));
  MUST(cudaMallocAsync(&device_b, kBytes, nullptr));
  MUST(cudaMallocManaged(&device_sum, kBytes));
  MUST(cudaMemcpy(device_a, a.data(), kBytes, cudaMemcpyHostToDevice));
  MUST(cudaMemcpyAsync(device_b, b.data(), kBytes, cudaMemcpyDefault, nullptr));
  MUST(cudaMemset(device_sum, 0, kBytes));
  add<<<4, 256>>>(device_a, device_b, device_sum, kCount);
  MUST(cudaGetLastError());
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpy(sum.data(), device_sum, kBytes, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += sum[i] != static_cast<float>(3 * i + 1) || device_sum[i] != sum[i];

  // Rows: every second column of a matrix of 8 rows, by a pitched copy.
  constexpr std::size_t kWidth = 40, kHeight = 8;
  unsigned char* rows;
  std::size_t pitch;
  MUST(cudaMallocPitch(&rows, &pitch, kWidth, kHeight));
  MUST(cudaMemset2D(rows, pitch, 7, kWidth, kHeight));
  std::vector<unsigned char> dense(kWidth * kHeight);
  MUST(cudaMemcpy2D(dense.data(), kWidth, rows, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
  for (const unsigned char byte : dense) wrong += byte != 7;

  MUST(cudaFree(device_a));
  MUST(cudaFreeAsync(device_b, nullptr));
  MUST(cudaFree(device_sum));
  MUST(cudaFree(rows));
  std::printf("%d wrong, pitch %zu\n", wrong, pitch);
  if (wrong != 0) return 1;
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
