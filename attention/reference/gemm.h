// The one loop nest under both references: C += A B on tiles, in double or single precision.
#pragma once

#include <cstddef>

namespace flashback::reference {

// Columns that one step of the loop covers: 64 bytes.
template <typename Real>
inline constexpr std::ptrdiff_t kPanel = 64 / sizeof(Real);
inline constexpr std::ptrdiff_t kRowGroup = 4;

// element(i, k) = data[i * row + k * column]: a matrix or its transpose.
template <typename Real>
struct Left {
  const Real* data;
  std::ptrdiff_t row, column;
};

// element(k, j) = data[k * row + (j / kPanel) * panel + j % kPanel]: rows, or panels of kPanel columns one
// after another.
template <typename Real>
struct Right {
  const Real* data;
  std::ptrdiff_t row, panel;
};

// c[i * c_row + j] += sum over k < depth of left(i, k) * right(k, j), for i < rows and j < columns; rows is a
// multiple of kRowGroup, columns of kPanel.
template <typename Real>
struct Product {
  Real* c;
  std::ptrdiff_t c_row;
  Left<Real> left;
  Right<Real> right;
  std::ptrdiff_t rows, columns, depth;
};

void accumulate(const Product<double>& product);
void accumulate(const Product<float>& product);

}  // namespace flashback::reference
