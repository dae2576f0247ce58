// The arithmetic of tcgen05.mma kind::f16 and wgmma with 16-bit inputs and fp32 accumulators, bit by bit.
//
// An instruction is one fused step for each output: D = A B + C over 16 products. The products are exact,
// with exponent ea + eb (not normalised: their significands lie in [1, 4)). Products and C are aligned to the
// largest exponent E of the 17, each is cut toward zero to a multiple of 2^(E-25), the integers are added
// exactly, and the sum is cut toward zero to fp32. docs/emulator/matrix_arithmetic.md gives the corners
// (zeros, subnormals, overflow, NaN) and why this is exact.
//
// Use, for one instruction:
//   const MatrixArithmetic& arithmetic = matrix_arithmetic();
//   arithmetic.rows_from_k_major(Half::kBf16, a_values, kAllLaneGroups, &a);  // once for all uses of A
//   arithmetic.columns_from_k_major(Half::kBf16, b_values, n, &b);            // and of B
//   arithmetic.multiply_add(a, b, /*accumulate=*/true, kAllLaneGroups, d);    // d: first column of D
#pragma once

#include <cstdint>

namespace flashback::emulator {

// kTf32: a value is a word of which the 13 lowest bits do not count, in the place of two of 16 bits; a step
// has eight products of them, and eight of zeros.
enum class Half : std::uint8_t { kBf16, kF16, kTf32 };

inline constexpr int kMatrixLanes = 128;    // of tensor memory: the rows (M) of A and D, the vector direction
inline constexpr int kMatrixDepth = 16;     // products of one fused step (K)
inline constexpr int kMatrixColumns = 256;  // most columns (N) of one instruction

// Which lanes hold rows: bit i stands for lanes 16i to 16i+15.
using LaneGroups = std::uint8_t;
inline constexpr LaneGroups kAllLaneGroups = 0xff;  // M = 128
inline constexpr LaneGroups kScattered64 = 0x55;    // M = 64: row m in lane m % 16 + 32 * (m / 16)
inline constexpr LaneGroups kFirst64Lanes = 0x0f;   // M = 64 of wgmma: row m in lane m
inline constexpr LaneGroups kLast64Lanes = 0xf0;

// What the fast path asks of a block.
struct BlockRange {
  int largest_exponent;   // of all values; that of subnormals when all are zero
  int smallest_exponent;  // of the format, that of subnormals: -126 (bf16), -14 (f16)
  bool finite;            // no infinity, no NaN
};

// A of one step, prepared once and used with any B. Lanes outside the groups given at preparation are zero.
// An exponent is kept as its height: 63 for the largest, less one for each power of two below it, 0 for all
// that lies deeper and for zeros.
struct alignas(64) RowBlock {
  float value[kMatrixDepth][kMatrixLanes];
  std::uint8_t height[kMatrixDepth][kMatrixLanes];  // below the lane's largest exponent
  std::int32_t largest_exponent[kMatrixLanes];
  std::uint8_t all_zero[kMatrixLanes];  // 255 where all values of the lane are zero
  BlockRange range;
  bool near_two;  // significands of some lane sum to 31 or more: a sum of 17 terms may leave int32
};

// B of one step.
struct alignas(64) ColumnBlock {
  float value[kMatrixColumns][kMatrixDepth];
  // Below the block's largest exponent; the same in each byte of the word.
  std::uint32_t height[kMatrixColumns][kMatrixDepth];
  bool all_zero[kMatrixColumns];
  BlockRange range;
  int columns;  // a multiple of 8
};

// One implementation for each instruction set. Values come as they leave shared memory in 16-byte chunks:
//   k major:  8 consecutive k of one row, copied to &values[row][k]     (rows = lanes for A, columns for B)
//   mn major: 8 consecutive rows of one k, copied to &values[k][row]; not of tf32
// or straight from tensor memory: 8 columns, each lane holding k = 2c in its low half and 2c + 1 in its high
// half. All arrays are aligned to 64 bytes.
struct MatrixArithmetic {
  const char* name;  // "AVX-512" or "AVX2"

  void (*rows_from_k_major)(Half, const std::uint16_t (*values)[kMatrixDepth], LaneGroups, RowBlock*);
  void (*rows_from_mn_major)(Half, const std::uint16_t (*values)[kMatrixLanes], LaneGroups, RowBlock*);
  void (*rows_from_tensor_memory)(Half, const std::uint32_t (*columns)[kMatrixLanes], LaneGroups, RowBlock*);
  void (*columns_from_k_major)(Half, const std::uint16_t (*values)[kMatrixDepth], int columns, ColumnBlock*);
  void (*columns_from_mn_major)(Half, const std::uint16_t (*values)[kMatrixColumns], int columns,
                                ColumnBlock*);

  // d[column][lane] = a b + (accumulate ? d : 0), as fp32 words, for the lanes of the groups and all columns
  // of b.
  void (*multiply_add)(const RowBlock& a, const ColumnBlock& b, bool accumulate, LaneGroups,
                       std::uint32_t (*d)[kMatrixLanes]);

  // The same, but where bits are cut from a sum its last bit is set: when such a word is rounded to fp16, the
  // result is that of the exact sum. Slower.
  void (*multiply_add_to_odd)(const RowBlock& a, const ColumnBlock& b, bool accumulate, LaneGroups,
                              std::uint32_t (*d)[kMatrixLanes]);
};

// The fastest that this processor runs.
const MatrixArithmetic& matrix_arithmetic();

// Each by name; null where the processor lacks the instructions.
const MatrixArithmetic* matrix_arithmetic_v3();  // AVX2
const MatrixArithmetic* matrix_arithmetic_v4();  // AVX-512

}  // namespace flashback::emulator
