// The matrix arithmetic in each instruction set of this processor, and the reference that judges it on other
// operands, against what an H200 gave for the products of products.cpp. The golden tests have the fastest of
// them alone, within a launch.
#include "tests/emulator/hardware/products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/emulator/hardware/golden.h"
#include "tests/emulator/machine/units/matrix_operand_kinds.h"

namespace flashback::emulator::testing {
namespace {

// d[row][column] of a step as fp32 words.
using D = std::uint32_t[kProductRows][kProductColumns];

std::uint32_t accumulator(const ProductStep& step, bool is_f16, int row, int column) {
  if (!is_f16) return step.c[row][column];
  std::uint16_t half;
  std::memcpy(&half, reinterpret_cast<const std::byte*>(step.c) + 2 * (row * kProductColumns + column), 2);
  return to_word(reference::value_of(half, 10, 5));
}

void multiply_by_reference(const ProductStep& step, Half half, bool to_f16, D d) {
  for (int m = 0; m < kProductRows; ++m) {
    for (int n = 0; n < kProductColumns; ++n) {
      const std::uint32_t c = step.accumulate ? accumulator(step, to_f16, m, n) : 0;
      d[m][n] = reference::fused_step(step.a[m], format_of(half), step.b[n], format_of(half), c, to_f16);
    }
  }
}

void multiply_by(const MatrixArithmetic& arithmetic, const ProductStep& step, Half half, bool to_f16, D d) {
  static RowBlock a;
  static ColumnBlock b;
  static Operands x;
  std::memcpy(x.a, step.a, sizeof step.a);
  std::memcpy(x.b, step.b, sizeof step.b);
  for (int m = 0; m < kProductRows; ++m) {
    for (int n = 0; n < kProductColumns; ++n) x.c[n][m] = accumulator(step, to_f16, m, n);
  }
  arithmetic.rows_from_k_major(half, x.a, kFirst64Lanes, &a);
  arithmetic.columns_from_k_major(half, x.b, kProductColumns, &b);
  (to_f16 ? arithmetic.multiply_add_to_odd : arithmetic.multiply_add)(a, b, step.accumulate != 0,
                                                                      kFirst64Lanes, x.c);
  for (int m = 0; m < kProductRows; ++m) {
    for (int n = 0; n < kProductColumns; ++n) d[m][n] = x.c[n][m];
  }
}

// A NaN stays the canonical one, a zero is positive.
std::uint16_t rounded(std::uint32_t word) {
  const double value = reference::value_of(word, 23, 8);
  if (std::isnan(value)) return 0x7fff;
  if (std::isinf(value)) return value < 0 ? 0xfc00 : 0x7c00;
  const std::uint16_t half = to_half(value, Half::kF16);
  return half == 0x8000 ? 0 : half;
}

// Empty where `multiply` gives for every step what the GPU gave.
template <class Multiply>
std::string differences(const Recipe& recipe, Multiply&& multiply) {
  const bool to_f16 = recipe.name == "product_f16_d";
  const Half half = recipe.name == "product_bf16" ? Half::kBf16 : Half::kF16;
  const Experiment experiment = recipe.build();
  const std::optional<Golden> golden = read_golden(golden_path(FLASHBACK_SOURCE_DIR, experiment.name));
  if (!golden) return "no golden file";
  const std::vector<std::byte>& steps = experiment.buffers[0].initial;
  Results results(2);
  for (std::size_t at = 0; at < steps.size(); at += sizeof(ProductStep)) {
    ProductStep step;
    std::memcpy(&step, &steps[at], sizeof step);
    D d;
    multiply(step, half, to_f16, d);
    for (const std::uint32_t word : std::span(&d[0][0], kProductRows * kProductColumns)) {
      const std::uint32_t value = to_f16 ? rounded(word) : word;
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      results[1].insert(results[1].end(), bytes, bytes + (to_f16 ? 2 : 4));
    }
  }
  return difference(*golden, experiment, results);
}

template <class Multiply>
void compare(Multiply&& multiply) {
  int compared = 0;
  for (const Recipe& recipe : product_experiments()) {
    if (recipe.name != "product_bf16" && recipe.name != "product_f16" && recipe.name != "product_f16_d")
      continue;  // the reference has no tf32, and layouts are no arithmetic
    EXPECT_EQ(differences(recipe, multiply), "") << recipe.name;
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(Products, ReferenceGivesTheWordsOfAnH200) {
  compare(multiply_by_reference);
}

TEST(Products, EachInstructionSetGivesTheWordsOfAnH200) {
  for (const MatrixArithmetic* arithmetic : {matrix_arithmetic_v3(), matrix_arithmetic_v4()}) {
    if (arithmetic == nullptr) continue;
    SCOPED_TRACE(arithmetic->name);
    compare([&](const ProductStep& step, Half half, bool to_f16, D d) {
      multiply_by(*arithmetic, step, half, to_f16, d);
    });
  }
}

}  // namespace
}  // namespace flashback::emulator::testing
