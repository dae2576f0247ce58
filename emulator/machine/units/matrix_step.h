// The fused step: which way each part of it is computed.
#pragma once

#include "emulator/machine/units/matrix_narrow_step.h"
#include "emulator/machine/units/matrix_wide_step.h"

namespace flashback::emulator {
namespace {

// Not inlined: what it computes depends on the control register, of which the compiler knows nothing.
__attribute__((noinline)) void multiply_add_cut(const RowBlock& a, const ColumnBlock& b, bool accumulate,
                                                LaneGroups groups, std::uint32_t (*d)[kMatrixLanes]) {
  constexpr int kColumns = kVectorBytes == 64 ? 4 : 2, kVectors = kVectorBytes == 64 ? 1 : 2;
  if (!a.range.finite || !b.range.finite || a.near_two ||
      a.range.largest_exponent + b.range.largest_exponent + kBias > kHighest) {
    for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
      if (holds(groups, lane)) wide_step(a, b, 0, b.columns, lane, 1, accumulate, d);
    }
    return;
  }
  LaneFacts facts;
  find_lane_facts(a, b, &facts);
  for (int column = 0; column < b.columns; column += kColumnsAtOnce) {
    alignas(kVectorBytes) std::uint8_t heights[kColumnsAtOnce][kMatrixLanes];
    const bool near = largest_heights(a, b, column, heights) > kTop && facts.in_range;
    for (int c = 0; c < kColumnsAtOnce; c += kColumns) {
      const bool no_column = all(&b.all_zero[column + c], kColumns);
      for (int lane = 0; lane < kMatrixLanes; lane += kVectors * kWords) {
        if (!holds(groups, lane)) continue;
        const int vector = lane / kWords;
        bool done;
        if (no_column || all(&facts.all_zero[vector], kVectors)) {
          done = zero_step<kColumns, kVectors>(lane, accumulate, d + column + c);
        } else {
          const bool near_lanes = near && !any(&facts.some_zero[vector], kVectors);
          auto* step =
              near_lanes ? narrow_step<kColumns, kVectors, true> : narrow_step<kColumns, kVectors, false>;
          done = step(a, &b.value[column + c], lane, accumulate, facts, heights + c, d + column + c);
        }
        if (!done) wide_step(a, b, column + c, kColumns, lane, kVectors, accumulate, d);
      }
    }
  }
}

// All exceptions masked, subnormals kept, rounding toward zero; as before afterwards.
class Cutting {
 public:
  Cutting() : saved_(_mm_getcsr()) { _mm_setcsr(_MM_MASK_MASK | _MM_ROUND_TOWARD_ZERO); }
  ~Cutting() { _mm_setcsr(saved_); }
  Cutting(const Cutting&) = delete;
  Cutting& operator=(const Cutting&) = delete;

 private:
  const unsigned saved_;
};

void multiply_add(const RowBlock& a, const ColumnBlock& b, bool accumulate, LaneGroups groups,
                  std::uint32_t (*d)[kMatrixLanes]) {
  const Cutting cutting;
  multiply_add_cut(a, b, accumulate, groups, d);
}

// The wide step has the sum before it is cut.
void multiply_add_to_odd(const RowBlock& a, const ColumnBlock& b, bool accumulate, LaneGroups groups,
                         std::uint32_t (*d)[kMatrixLanes]) {
  const Cutting cutting;
  for (int lane = 0; lane < kMatrixLanes; lane += kWords) {
    if (holds(groups, lane)) wide_step(a, b, 0, b.columns, lane, 1, accumulate, d, true);
  }
}

}  // namespace
}  // namespace flashback::emulator
