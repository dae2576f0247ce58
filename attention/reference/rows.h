// What happens to one row of scores between the matrix products. A row has `length` elements, a multiple of
// kPanel, of which the first `visible` are keys that the query sees; the rest become zero.
#pragma once

#include <cstddef>

#include "attention/problem.h"

namespace flashback::reference {

// Double precision: nothing is rounded.
struct Exact {};
// Eager 16-bit arithmetic: what is stored between operations is rounded to `dtype`.
struct Stored {
  Dtype dtype;
};

// In: q.k. Out: P = softmax(scale * q.k). Returns the natural logarithm of the sum of exp(scale * q.k);
// -infinity when nothing is visible.
double softmax(double* row, std::ptrdiff_t visible, std::ptrdiff_t length, double scale, Exact);
double softmax(float* row, std::ptrdiff_t visible, std::ptrdiff_t length, double scale, Stored stored);

// `d_row` in: dP = dout.v. Out: dS = scale * P * (dP - delta), the gradient of q.k, where delta = sum of P *
// dP = dout.out.
void softmax_gradient(const double* p, double* d_row, std::ptrdiff_t length, double delta, double scale,
                      Exact);
void softmax_gradient(const float* p, float* d_row, std::ptrdiff_t length, double delta, double scale,
                      Stored stored);

}  // namespace flashback::reference
