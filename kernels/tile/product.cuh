// D (+)= A B on the tensor core, operands named by where they lie and how they are read.
#pragma once

#include "kernels/ptx/tcgen05.cuh"
#include "kernels/tile/operand.h"

namespace flashback::tile {

// An operand in shared memory: `own` along M or N, `inner` along K.
template <Major major, int own, int inner>
struct SharedOperand {
  static constexpr Major kMajor = major;
  static constexpr int kOwn = own, kInner = inner;

  std::uint64_t descriptor;

  __device__ std::uint64_t step(int i) const { return descriptor + i * descriptor_step(major); }
};

// The rows are M or N, the 64 columns K.
template <int rows>
__device__ SharedOperand<Major::kInner, rows, kRowElements> along_rows(const OperandTile<rows>& t) {
  constexpr std::uint64_t kFields = shared_descriptor(Major::kInner, rows, OperandTile<rows>::kBytes);
  return {kFields | descriptor_address(ptx::shared_address(&t))};
}

// The 64 columns are M or N, the rows K.
template <int rows>
__device__ SharedOperand<Major::kOwn, kRowElements, rows> down_columns(const OperandTile<rows>& t) {
  constexpr std::uint64_t kFields = shared_descriptor(Major::kOwn, kRowElements, OperandTile<rows>::kBytes);
  return {kFields | descriptor_address(ptx::shared_address(&t))};
}

// The same over tiles side by side.
template <int rows, int n>
__device__ SharedOperand<Major::kOwn, n * kRowElements, rows> down_columns(const OperandTile<rows> (&t)[n]) {
  constexpr std::uint64_t kFields =
      shared_descriptor(Major::kOwn, n * kRowElements, OperandTile<rows>::kBytes);
  return {kFields | descriptor_address(ptx::shared_address(&t))};
}

// A in tensor memory: 128 lanes are M, two elements of K a column.
template <int inner>
struct TensorOperand {
  static constexpr Major kMajor = Major::kInner;
  static constexpr int kOwn = 128, kInner = inner;

  std::uint32_t address;

  __device__ std::uint32_t step(int i) const { return address + i * kTensorMemoryStep; }
};

// D has 128 lanes of M and one column for each of B's N. One thread issues; completion is by commit.
template <shared::Dtype dtype, class A, class B>
__device__ void multiply(std::uint32_t d, const A& a, const B& b, bool accumulate) {
  static_assert(A::kOwn == 128 && A::kInner == B::kInner);
  constexpr std::uint32_t kInstruction =
      instruction_descriptor(dtype, A::kOwn, B::kOwn, A::kMajor, B::kMajor);
#pragma unroll
  for (int i = 0; i < A::kInner / kStepDepth; ++i) {
    ptx::mma(d, a.step(i), b.step(i), kInstruction, accumulate || i > 0);
  }
}

// D = A B^T of tiles side by side, along the rows of both.
template <shared::Dtype dtype, int rows_a, int rows_b, int n>
__device__ void multiply_along(std::uint32_t d, const OperandTile<rows_a> (&a)[n],
                               const OperandTile<rows_b> (&b)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) multiply<dtype>(d, along_rows(a[i]), along_rows(b[i]), i > 0);
}

}  // namespace flashback::tile
