// A tensor map by the driver's entry point: what the driver refuses, and a tile at the corner of a matrix
// that a bulk tensor copy brings into shared memory.
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "check.h"

constexpr int kRows = 10, kColumns = 20, kBoxRows = 4, kBoxColumns = 8;

__global__ void load_tile(const __grid_constant__ CUtensorMap map, int column, int row, float* out) {
  __shared__ alignas(128) float tile[kBoxRows * kBoxColumns];
  __shared__ alignas(8) std::uint64_t full;
  const auto tile_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  const auto full_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(full_address));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full_address),
                 "r"(static_cast<std::uint32_t>(sizeof tile)));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(tile_address),
        "l"(&map), "r"(column), "r"(row), "r"(full_address)
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
      "@!done bra again;\n"
      "}" ::"r"(full_address)
      : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

using Encode = decltype(&cuTensorMapEncodeTiled);

CUresult encode(Encode function, CUtensorMap* map, void* base, cuuint64_t row_bytes, cuuint32_t box_columns,
                CUtensorMapSwizzle swizzle) {
  const cuuint64_t dims[] = {kColumns, kRows}, strides[] = {row_bytes};
  const cuuint32_t box[] = {box_columns, kBoxRows}, element_strides[] = {1, 1};
  return function(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims, strides, box, element_strides,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

int main() {
  std::vector<float> matrix(kRows * kColumns);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
  float *device, *out;
  MUST(cudaMalloc(&device, matrix.size() * sizeof(float)));
  MUST(cudaMalloc(&out, kBoxRows * kBoxColumns * sizeof(float)));
  MUST(cudaMemcpy(device, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice));

  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  MUST(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeNothing", &entry, 12000, cudaEnableDefault, &found));
  std::printf("a function that does not exist: %s\n",
              found == cudaDriverEntryPointSymbolNotFound ? "not found" : "found");
  MUST(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
  const auto function = reinterpret_cast<Encode>(entry);

  CUtensorMap map;
  constexpr cuuint64_t kRowBytes = kColumns * sizeof(float);
  std::printf("stride: %d\n",
              encode(function, &map, device, kRowBytes + 4, kBoxColumns, CU_TENSOR_MAP_SWIZZLE_NONE));
  std::printf("address: %d\n",
              encode(function, &map, device + 1, kRowBytes, kBoxColumns, CU_TENSOR_MAP_SWIZZLE_NONE));
  std::printf("box: %d\n", encode(function, &map, device, kRowBytes, 16, CU_TENSOR_MAP_SWIZZLE_32B));
  std::printf("good: %d\n",
              encode(function, &map, device, kRowBytes, kBoxColumns, CU_TENSOR_MAP_SWIZZLE_NONE));

  // The tile hangs over the right and the lower edge, where it is filled with zeros.
  constexpr int kColumn = kColumns - 4, kRow = kRows - 3;
  load_tile<<<1, kBoxRows * kBoxColumns>>>(map, kColumn, kRow, out);
  MUST(cudaDeviceSynchronize());
  std::vector<float> tile(kBoxRows * kBoxColumns);
  MUST(cudaMemcpy(tile.data(), out, tile.size() * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int r = 0; r < kBoxRows; ++r) {
    for (int c = 0; c < kBoxColumns; ++c) {
      const bool inside = kRow + r < kRows && kColumn + c < kColumns;
      const float expected = inside ? matrix[(kRow + r) * kColumns + kColumn + c] : 0;
      wrong += tile[r * kBoxColumns + c] != expected;
    }
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
