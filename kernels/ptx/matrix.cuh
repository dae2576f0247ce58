// Matrices of 8 x 8 16-bit elements between registers and shared memory, four at a time, a warp together.
// Lane l addresses one row of 16 bytes: row l % 8 of matrix l / 8. Lane l holds elements 2 * (l % 4) and the
// next of row l / 4 of each matrix.
#pragma once

#include <cstdint>

namespace flashback::ptx {

__device__ inline void load_matrix(std::uint32_t (&m)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row)
               : "memory");
}

__device__ inline void store_matrix(std::uint32_t row, const std::uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m[0]),
               "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

// Each matrix is stored transposed.
__device__ inline void store_matrix_transposed(std::uint32_t row, const std::uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(m[0]),
               "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

}  // namespace flashback::ptx
