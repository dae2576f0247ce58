// The arithmetic of tcgen05.mma kind::f16 and wgmma with 16-bit inputs and fp32 accumulators, bit by bit:
// one fused step for each 16 products. The 16 exact products and the accumulator are aligned to the largest exponent
// (of a product: ea + eb, not normalised; zero as a product or accumulator has the exponent of the smallest normal number), each
// term is cut toward zero at 25 fractional bits, the integers are added exactly and the sum is cut toward zero to fp32.
// NaN in, or inf - inf, or 0 * inf: 0x7fffffff.
//
// Known from bit-exact comparisons of a public model with B200 and H100 silicon.
#pragma once

#include <cstdint>

namespace flashback::emulator {

enum class Half : std::uint8_t { kBf16, kF16 };

inline constexpr int kMatrixRows = 128;  // lanes of tensor memory: the vector direction
inline constexpr int kMatrixDepth = 16;  // products of one fused step

// One fused-step operand block, prepared once from its 16-bit values and used by many steps.
// Rows are the M direction (lanes of tensor memory), columns the N direction.
struct RowBlock;     // 128 rows x 16
struct ColumnBlock;  // n columns x 16

// ... see matrix_arithmetic.cpp

}  // namespace flashback::emulator
