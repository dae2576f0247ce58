// The matrix arithmetic in each instruction set of this processor, bit by bit: against words that a GPU
// computed, and against the reference on operands of every kind.
#include "emulator/machine/units/matrix_arithmetic.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/machine/units/matrix_reference.h"

namespace flashback::emulator {
namespace {

using Random = std::mt19937_64;

struct alignas(64) Operands {
  std::uint16_t a[kMatrixLanes][kMatrixDepth];
  std::uint16_t b[kMatrixColumns][kMatrixDepth];
  std::uint32_t c[kMatrixColumns][kMatrixLanes];
};

reference::HalfFormat format_of(Half half) {
  return half == Half::kBf16 ? reference::kBf16 : reference::kF16;
}

std::vector<const MatrixArithmetic*> implementations() {
  std::vector<const MatrixArithmetic*> all;
  for (const MatrixArithmetic* one : {matrix_arithmetic_v3(), matrix_arithmetic_v4()}) {
    if (one != nullptr) all.push_back(one);
  }
  return all;
}

// ---- Words of an H200.

// wgmma.mma_async.m64n8k16 with random operands: normal, wide exponents, zeros, subnormals, sums that cancel,
// overflow, infinities and NaN, and terms small enough to show which exponent a zero has. The first 16 of 64
// rows.
struct HardwareStep {
  std::uint16_t half, accumulate;
  std::uint16_t a[16][16], b[8][16];
  std::uint32_t c[16][8], d[16][8];
};

std::vector<HardwareStep> hardware_steps() {
  std::ifstream file(FLASHBACK_SOURCE_DIR "/tests/emulator/machine/units/wgmma_h200.bin", std::ios::binary);
  std::vector<HardwareStep> steps;
  for (HardwareStep step; file.read(reinterpret_cast<char*>(&step), sizeof step);) steps.push_back(step);
  return steps;
}

TEST(MatrixReference, AgreesWithHardware) {
  const std::vector<HardwareStep> steps = hardware_steps();
  ASSERT_EQ(steps.size(), 58u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const HardwareStep& s = steps[i];
    const reference::HalfFormat format = format_of(static_cast<Half>(s.half));
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 8; ++n) {
        const std::uint32_t c = s.accumulate ? s.c[m][n] : 0;
        ASSERT_EQ(reference::fused_step(s.a[m], format, s.b[n], format, c), s.d[m][n])
            << "step " << i << ", row " << m << ", column " << n;
      }
    }
  }
}

TEST(MatrixArithmetic, AgreesWithHardware) {
  for (const MatrixArithmetic* arithmetic : implementations()) {
    auto x = std::make_unique<Operands>();
    RowBlock a;
    auto b = std::make_unique<ColumnBlock>();
    const std::vector<HardwareStep> steps = hardware_steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const HardwareStep& s = steps[i];
      for (int m = 0; m < 16; ++m) {
        std::memcpy(x->a[m], s.a[m], sizeof s.a[m]);
        for (int n = 0; n < 8; ++n) x->c[n][m] = s.c[m][n];
      }
      arithmetic->rows_from_k_major(static_cast<Half>(s.half), x->a, LaneGroups{1}, &a);
      std::memcpy(x->b, s.b, sizeof s.b);
      arithmetic->columns_from_k_major(static_cast<Half>(s.half), x->b, 8, b.get());
      arithmetic->multiply_add(a, *b, s.accumulate, LaneGroups{1}, x->c);
      for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 8; ++n) {
          ASSERT_EQ(x->c[n][m], s.d[m][n])
              << arithmetic->name << ", step " << i << ", row " << m << ", column " << n;
        }
      }
    }
  }
}

// ---- Random operands against the reference.

bool chance(Random& random, double probability) {
  return std::bernoulli_distribution(probability)(random);
}
double normal(Random& random) {
  return std::normal_distribution<double>()(random);
}

// A 16-bit number with any sign and fraction and an exponent from a range, clamped to what the format has.
std::uint16_t with_exponent(Random& random, Half half, int lowest, int highest) {
  const auto [fraction_bits, exponent_bits] = format_of(half);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int field = std::uniform_int_distribution(lowest, highest)(random) + bias;
  field = std::clamp(field, 0, 2 * bias);
  const std::uint32_t sign_and_fraction = static_cast<std::uint32_t>(random());
  return static_cast<std::uint16_t>((sign_and_fraction & ~(((1u << exponent_bits) - 1) << fraction_bits)) |
                                    static_cast<std::uint32_t>(field) << fraction_bits);
}

std::uint32_t word_with_exponent(Random& random, int lowest, int highest) {
  const int field = std::clamp(std::uniform_int_distribution(lowest, highest)(random) + 127, 0, 254);
  return (static_cast<std::uint32_t>(random()) & 0x807fffff) | static_cast<std::uint32_t>(field) << 23;
}

__attribute__((target("f16c"))) std::uint16_t to_half(double value, Half half) {
  if (half == Half::kF16) return _cvtss_sh(static_cast<float>(value), 0);
  const float f = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::uint32_t to_word(double value) {
  const float f = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return bits;
}

std::uint16_t infinity(Half half) {
  return half == Half::kBf16 ? 0x7f80 : 0x7c00;
}
std::uint16_t zero(Random& random) {
  return chance(random, 0.5) ? 0x8000 : 0;
}

struct Distribution {
  const char* name;
  std::uint16_t (*a)(Random&, Half);
  std::uint16_t (*b)(Random&, Half);
  std::uint32_t (*c)(Random&);
};

std::uint16_t any_normal(Random& random, Half half) {
  return to_half(normal(random), half);
}
std::uint16_t any_finite(Random& random, Half half) {
  return with_exponent(random, half, -127, 127);
}
std::uint16_t any_bits(Random& random, Half) {
  return static_cast<std::uint16_t>(random());
}

const Distribution kDistributions[] = {
    {"normal", any_normal, any_normal, [](Random& r) { return to_word(normal(r)); }},
    {"large_accumulator", any_normal, any_normal, [](Random& r) { return word_with_exponent(r, 0, 20); }},
    {"probabilities",
     [](Random& r, Half half) { return to_half(std::exp(-5 * std::pow(normal(r), 2)), half); }, any_normal,
     [](Random& r) { return to_word(10 * normal(r)); }},
    {"causal",
     [](Random& r, Half half) { return chance(r, 0.8) ? zero(r) : to_half(std::exp(normal(r)), half); },
     any_normal, [](Random& r) { return chance(r, 0.5) ? 0u : to_word(normal(r)); }},
    {"mostly_zero", [](Random& r, Half half) { return chance(r, 0.97) ? zero(r) : any_finite(r, half); },
     [](Random& r, Half half) { return chance(r, 0.5) ? zero(r) : any_finite(r, half); },
     [](Random& r) { return chance(r, 0.5) ? zero(r) * 0x10000u : word_with_exponent(r, -127, 127); }},
    {"wide", [](Random& r, Half half) { return with_exponent(r, half, -40, 40); },
     [](Random& r, Half half) { return with_exponent(r, half, -40, 40); },
     [](Random& r) { return word_with_exponent(r, -80, 80); }},
    {"far_apart", [](Random& r, Half half) { return with_exponent(r, half, chance(r, 0.5) ? -90 : -10, 0); },
     [](Random& r, Half half) { return with_exponent(r, half, chance(r, 0.5) ? -90 : -10, 0); },
     [](Random& r) { return word_with_exponent(r, -127, -20); }},
    {"any_finite", any_finite, any_finite, [](Random& r) { return word_with_exponent(r, -127, 127); }},
    {"any_bits", any_bits, any_bits, [](Random& r) { return static_cast<std::uint32_t>(r()); }},
    {"subnormal",
     [](Random& r, Half half) {
       return with_exponent(r, half, half == Half::kBf16 ? -128 : -17, half == Half::kBf16 ? -125 : -13);
     },
     [](Random& r, Half half) {
       return with_exponent(r, half, half == Half::kBf16 ? 100 : -17, half == Half::kBf16 ? 127 : 15);
     },
     [](Random& r) { return word_with_exponent(r, -127, -10); }},
    {"tiny", [](Random& r, Half half) { return with_exponent(r, half, -75, -60); },
     [](Random& r, Half half) { return with_exponent(r, half, -75, -55); },
     [](Random& r) { return chance(r, 0.5) ? 0u : word_with_exponent(r, -127, -120); }},
    {"edge_of_the_fast_range", [](Random& r, Half half) { return with_exponent(r, half, -51, -49); },
     [](Random& r, Half half) { return with_exponent(r, half, -53, -49); },
     [](Random& r) { return word_with_exponent(r, -106, -98); }},
    {"huge", [](Random& r, Half half) { return with_exponent(r, half, 58, 63); },
     [](Random& r, Half half) { return with_exponent(r, half, 58, 64); },
     [](Random& r) { return word_with_exponent(r, 115, 127); }},
    // Significands of nearly two and one sign: sums beyond 2^31 units.
    {"near_two", [](Random& r, Half) { return static_cast<std::uint16_t>(0x3fff - r() % 3); },
     [](Random& r, Half) { return static_cast<std::uint16_t>(0x3fff - r() % 3); },
     [](Random& r) { return (static_cast<std::uint32_t>(r()) & 0x800fffff) | 0x3ff00000; }},
    {"integers", [](Random& r, Half half) { return to_half(static_cast<int>(r() % 9) - 4, half); },
     [](Random& r, Half half) { return to_half(static_cast<int>(r() % 9) - 4, half); },
     [](Random& r) { return to_word(static_cast<int>(r() % 65) - 32); }},
    {"infinities",
     [](Random& r, Half half) {
       return chance(r, 0.01) ? static_cast<std::uint16_t>(infinity(half) | zero(r)) : any_normal(r, half);
     },
     [](Random& r, Half half) { return chance(r, 0.05) ? zero(r) : any_normal(r, half); },
     [](Random& r) { return chance(r, 0.1) ? 0x7f800000u | zero(r) * 0x10000u : to_word(normal(r)); }},
    {"accumulator_not_finite", any_normal, any_normal,
     [](Random& r) {
       return chance(r, 0.1) ? 0x7f800000u | (static_cast<std::uint32_t>(r()) & 0x80000001)
                             : to_word(normal(r));
     }},
};

struct Case {
  const MatrixArithmetic* arithmetic;
  const Distribution* distribution;
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
  const auto [arithmetic, distribution] = GetParam();
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
    for (auto& row : x->a) {
      for (auto& value : row) value = distribution->a(random, a_half);
    }
    for (auto& column : x->b) {
      for (auto& value : column) value = distribution->b(random, b_half);
    }
    for (auto& column : x->c) {
      for (auto& word : column) word = distribution->c(random);
    }
    // Every other round the second half of k takes back the first, up to a few last bits.
    if (round % 2 == 1) {
      for (auto& row : x->a) {
        for (int k = 0; k < 8; ++k)
          row[k + 8] = static_cast<std::uint16_t>(row[k] ^ 0x8000 ^ chance(random, 0.1));
      }
      for (auto& column : x->b) std::copy(column, column + 8, column + 8);
    }
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
    for (const Distribution& distribution : kDistributions) all.push_back({arithmetic, &distribution});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, MatrixArithmeticRandom, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = std::string(info.param.arithmetic->name) + "_" + info.param.distribution->name;
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
