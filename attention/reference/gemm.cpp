#include "attention/reference/gemm.h"

#include <algorithm>

namespace flashback::reference {
namespace {

template <typename Real, int kBytes>
using Vector __attribute__((vector_size(kBytes), aligned(sizeof(Real)), may_alias)) = Real;

// Four rows by one panel of C stay in registers over the whole depth. A panel is 64 / kBytes vectors.
template <int kBytes, typename Real>
[[gnu::always_inline]] inline void accumulate_tile(Real* c, std::ptrdiff_t c_row, Left<Real> left,
                                                   Right<Real> right, std::ptrdiff_t depth) {
  using V = Vector<Real, kBytes>;
  constexpr int kParts = 64 / kBytes;
  constexpr std::ptrdiff_t kWidth = kBytes / sizeof(Real);
  V sum[kRowGroup][kParts];
#pragma GCC unroll 4
  for (int i = 0; i < kRowGroup; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) sum[i][p] = *reinterpret_cast<const V*>(c + i * c_row + p * kWidth);
  }
  for (std::ptrdiff_t k = 0; k < depth; ++k) {
    V b[kParts];
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p)
      b[p] = *reinterpret_cast<const V*>(right.data + k * right.row + p * kWidth);
#pragma GCC unroll 4
    for (int i = 0; i < kRowGroup; ++i) {
      const Real a = left.data[i * left.row + k * left.column];
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) sum[i][p] += a * b[p];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRowGroup; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) *reinterpret_cast<V*>(c + i * c_row + p * kWidth) = sum[i][p];
  }
}

// Depth is cut so that a panel of it stays in the first cache; the longer side of C is the outer loop, so
// that what the inner loop reads again is the smaller operand.
template <int kBytes, typename Real>
[[gnu::always_inline]] inline void accumulate_all(Product<Real> t) {
  constexpr std::ptrdiff_t kDepth = 256;
  for (std::ptrdiff_t k = 0; k < t.depth; k += kDepth) {
    const std::ptrdiff_t depth = std::min(kDepth, t.depth - k);
    auto tile = [&](std::ptrdiff_t i, std::ptrdiff_t j) __attribute__((always_inline)) {
      const Left<Real> left{t.left.data + i * t.left.row + k * t.left.column, t.left.row, t.left.column};
      const Right<Real> right{t.right.data + k * t.right.row + j / kPanel<Real> * t.right.panel, t.right.row,
                              0};
      accumulate_tile<kBytes>(t.c + i * t.c_row + j, t.c_row, left, right, depth);
    };
    if (t.columns >= t.rows) {
      for (std::ptrdiff_t j = 0; j < t.columns; j += kPanel<Real>) {
        for (std::ptrdiff_t i = 0; i < t.rows; i += kRowGroup) tile(i, j);
      }
    } else {
      for (std::ptrdiff_t i = 0; i < t.rows; i += kRowGroup) {
        for (std::ptrdiff_t j = 0; j < t.columns; j += kPanel<Real>) tile(i, j);
      }
    }
  }
}

// One version for each level of x86-64, chosen when the program starts.
#if defined(__x86_64__)
[[gnu::target("arch=x86-64-v4")]] void multiply(Product<double> t) {
  accumulate_all<64>(t);
}
[[gnu::target("arch=x86-64-v4")]] void multiply(Product<float> t) {
  accumulate_all<64>(t);
}
[[gnu::target("arch=x86-64-v3")]] void multiply(Product<double> t) {
  accumulate_all<32>(t);
}
[[gnu::target("arch=x86-64-v3")]] void multiply(Product<float> t) {
  accumulate_all<32>(t);
}
[[gnu::target("default")]]
#endif
void multiply(Product<double> t) {
  accumulate_all<16>(t);
}
#if defined(__x86_64__)
[[gnu::target("default")]]
#endif
void multiply(Product<float> t) {
  accumulate_all<16>(t);
}

}  // namespace

void accumulate(const Product<double>& product) {
  multiply(product);
}
void accumulate(const Product<float>& product) {
  multiply(product);
}

}  // namespace flashback::reference
