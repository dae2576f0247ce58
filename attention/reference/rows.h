// What happens to one row of scores between the matrix products. A row has `length` elements, a multiple of
// kPanel, of which those from visible.first up to visible.end are keys that the query sees; the rest become
// zero.
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

struct Visible {
  std::ptrdiff_t first, end;
};

// In: q.k. Out: P = softmax(scale * q.k) with one more score, `sink`, whose weight is dropped; -infinity is
// none. Returns the natural logarithm of the sum of exp of all scores; -infinity when there is none.
double softmax(double* row, Visible visible, std::ptrdiff_t length, double scale, double sink, Exact);
double softmax(float* row, Visible visible, std::ptrdiff_t length, double scale, double sink, Stored stored);

// `d_row` in: dP = dout.v. Out: dS = scale * P * (dP - delta), the gradient of q.k, where delta = sum of P *
// dP = dout.out.
void softmax_gradient(const double* p, double* d_row, std::ptrdiff_t length, double delta, double scale,
                      Exact);
void softmax_gradient(const float* p, float* d_row, std::ptrdiff_t length, double delta, double scale,
                      Stored stored);

}  // namespace flashback::reference
