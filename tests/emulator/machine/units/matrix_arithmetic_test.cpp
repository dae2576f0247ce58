// The matrix arithmetic in each instruction set of this processor, bit by bit, against the reference on
// operands of every kind. tests/emulator/hardware/products_test.cpp holds both against a GPU.
#include "emulator/machine/units/matrix_arithmetic.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/machine/units/matrix_operand_kinds.h"
#include "tests/emulator/machine/units/matrix_reference.h"

namespace flashback::emulator {
namespace {

std::vector<const MatrixArithmetic*> implementations() {
  std::vector<const MatrixArithmetic*> all;
  for (const MatrixArithmetic* one : {matrix_arithmetic_v3(), matrix_arithmetic_v4()}) {
    if (one != nullptr) all.push_back(one);
  }
  return all;
}

struct Case {
  const MatrixArithmetic* arithmetic;
  const OperandKind* kind;
};

class MatrixArithmeticRandom : public testing::TestWithParam<Case> {};

int bit(LaneGroups groups, int lane) {
  return groups >> (lane / 16) & 1;
}

// Rows through each of the three ways in, columns through each of the two.
void prepare(const MatrixArithmetic& arithmetic, const Operands& x, Half a_half, Half b_half, int way,
             int columns, LaneGroups groups, RowBlock* a, ColumnBlock* b) {
  alignas(64) static std::uint16_t a_by_k[kMatrixDepth][kMatrixLanes], b_by_k[kMatrixDepth][kMatrixColumns];
  alignas(64) static std::uint32_t pairs[kMatrixDepth / 2][kMatrixLanes];
  for (int k = 0; k < kMatrixDepth; ++k) {
    for (int m = 0; m < kMatrixLanes; ++m) a_by_k[k][m] = x.a[m][k];
    for (int n = 0; n < kMatrixColumns; ++n) b_by_k[k][n] = x.b[n][k];
  }
  for (int c = 0; c < kMatrixDepth / 2; ++c) {
    for (int m = 0; m < kMatrixLanes; ++m) pairs[c][m] = x.a[m][2 * c] | x.a[m][2 * c + 1] << 16;
  }
  if (way % 3 == 0) arithmetic.rows_from_k_major(a_half, x.a, groups, a);
  if (way % 3 == 1) arithmetic.rows_from_mn_major(a_half, a_by_k, groups, a);
  if (way % 3 == 2) arithmetic.rows_from_tensor_memory(a_half, pairs, groups, a);
  if (way % 2 == 0) arithmetic.columns_from_k_major(b_half, x.b, columns, b);
  if (way % 2 == 1) arithmetic.columns_from_mn_major(b_half, b_by_k, columns, b);
}

TEST_P(MatrixArithmeticRandom, AgreesWithReference) {
  const auto [arithmetic, kind] = GetParam();
  Random random(2024);
  auto x = std::make_unique<Operands>();
  auto d = std::make_unique<Operands>();
  RowBlock a;
  auto b = std::make_unique<ColumnBlock>();
  constexpr int kColumnCounts[] = {8, 16, 24, 64, 128, 256};
  constexpr LaneGroups kGroups[] = {kAllLaneGroups, kScattered64, kFirst64Lanes};
  for (int round = 0; round < 36; ++round) {
    const Half a_half = static_cast<Half>(round % 2),
               b_half = round % 9 == 8 ? static_cast<Half>(1 - round % 2) : a_half;
    const int columns = kColumnCounts[round % 6];
    const LaneGroups groups = kGroups[round / 6 % 3];
    const bool accumulate = round % 5 != 4;
    fill(random, *kind, round, a_half, b_half, x.get());
    std::memcpy(d->c, x->c, sizeof d->c);
    prepare(*arithmetic, *x, a_half, b_half, round, columns, groups, &a, b.get());
    arithmetic->multiply_add(a, *b, accumulate, groups, d->c);
    for (int n = 0; n < kMatrixColumns; ++n) {
      for (int m = 0; m < kMatrixLanes; ++m) {
        std::uint32_t want = x->c[n][m];  // what is no output stays
        if (n < columns && bit(groups, m)) {
          want = reference::fused_step(x->a[m], format_of(a_half), x->b[n], format_of(b_half),
                                       accumulate ? x->c[n][m] : 0);
        }
        ASSERT_EQ(d->c[n][m], want) << "round " << round << ", row " << m << ", column " << n;
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const MatrixArithmetic* arithmetic : implementations()) {
    for (const OperandKind& kind : kOperandKinds) all.push_back({arithmetic, &kind});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, MatrixArithmeticRandom, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = std::string(info.param.arithmetic->name) + "_" + info.param.kind->name;
  std::erase(name, '-');
  return name;
});

TEST(MatrixArithmetic, FloatingPointModeOfTheCallerNeitherMattersNorChanges) {
  for (const MatrixArithmetic* arithmetic : implementations()) {
    auto x = std::make_unique<Operands>();
    RowBlock a;
    auto b = std::make_unique<ColumnBlock>();
    // 2^-100 * 2^-40 and an accumulator of 3 * 2^-149: subnormal in and out.
    for (auto& row : x->a) row[0] = 0x0d80;
    for (auto& column : x->b) column[0] = 0x2b80;
    for (auto& column : x->c) std::fill(std::begin(column), std::end(column), 3u);
    const unsigned saved = _mm_getcsr();
    const unsigned hostile = 0x1f80 | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON | _MM_ROUND_UP;
    _mm_setcsr(hostile);
    arithmetic->rows_from_k_major(Half::kBf16, x->a, kAllLaneGroups, &a);
    arithmetic->columns_from_k_major(Half::kBf16, x->b, 8, b.get());
    arithmetic->multiply_add(a, *b, true, kAllLaneGroups, x->c);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    EXPECT_EQ(after, hostile) << arithmetic->name;
    EXPECT_EQ(x->c[7][127], 3u + 512u) << arithmetic->name;
  }
}

TEST(MatrixArithmetic, FastestIsChosen) {
  const MatrixArithmetic* v4 = matrix_arithmetic_v4();
  EXPECT_EQ(&matrix_arithmetic(), v4 != nullptr ? v4 : matrix_arithmetic_v3());
}

}  // namespace
}  // namespace flashback::emulator
