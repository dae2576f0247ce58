#include "attention/reference/rows.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/reference/gemm.h"
#include "attention/reference/rounding.h"

// Compiled for each level of x86-64 and chosen when the program starts.
#if defined(__x86_64__)
#define FLASHBACK_EACH_LEVEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FLASHBACK_EACH_LEVEL
#endif

namespace flashback::reference {
namespace {

// What an operation's result is stored as.
struct NotRounded {
  template <typename Real>
  Real operator()(Real value) const {
    return value;
  }
};
struct ToBf16 {
  float operator()(float value) const { return round_bf16(value); }
};
struct ToF16 {
  float operator()(float value) const { return round_f16(value); }
};

// exp of x <= 0 to an ulp or two: x = n ln 2 + r with |r| <= ln 2 / 2, e^r by its series to r^13. Below -708,
// where e^x is no longer a normal number, 0. A loop over it vectorises, which one over std::exp does not.
[[gnu::always_inline]] inline double exp_nonpositive(double x) {
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double bounded = x < -708.0 ? -708.0 : x;
  const double shifted = bounded * 0x1.71547652b82fep0 + kRound;
  const double n = shifted - kRound;
  const double r = (bounded - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;
  double sum = 1.0 / 6227020800.0;
  constexpr double kFactorial[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0,
                                   120.0,       24.0,       6.0,       2.0,      1.0,     1.0};
#pragma GCC unroll 13
  for (double factorial : kFactorial) sum = sum * r + 1.0 / factorial;
  const auto power =
      std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + 0x3ff0000000000000);
  return x < -708.0 ? 0.0 : sum * power;
}

template <typename Real>
constexpr std::ptrdiff_t kLanes = kPanel<Real>;

// Sums lane by lane and then across: one order on every machine, and a loop that vectorises.
template <typename Real>
[[gnu::always_inline]] inline Real total(const Real (&lanes)[kLanes<Real>]) {
  Real sum = 0;
  for (Real lane : lanes) sum += lane;
  return sum;
}

template <typename Real, typename Store>
[[gnu::always_inline]] inline double softmax_row(Real* row, Visible visible, std::ptrdiff_t length,
                                                 double scale, double sink, Store store) {
  constexpr Real kNever = -std::numeric_limits<Real>::infinity();
  if (visible.first >= visible.end) {
    for (std::ptrdiff_t j = 0; j < length; ++j) row[j] = 0;
    return sink;
  }
  const Real factor = static_cast<Real>(scale);
  for (std::ptrdiff_t j = 0; j < visible.first; ++j) row[j] = kNever;
  for (std::ptrdiff_t j = visible.first; j < visible.end; ++j) row[j] = store(store(row[j]) * factor);
  for (std::ptrdiff_t j = visible.end; j < length; ++j) row[j] = kNever;

  Real highest[kLanes<Real>];
  for (Real& lane : highest) lane = kNever;
  for (std::ptrdiff_t j = 0; j < length; j += kLanes<Real>) {
    for (std::ptrdiff_t l = 0; l < kLanes<Real>; ++l)
      highest[l] = row[j + l] > highest[l] ? row[j + l] : highest[l];
  }
  Real maximum = static_cast<Real>(sink);
  for (Real lane : highest) maximum = lane > maximum ? lane : maximum;

  Real sums[kLanes<Real>] = {};
  for (std::ptrdiff_t j = 0; j < length; j += kLanes<Real>) {
    for (std::ptrdiff_t l = 0; l < kLanes<Real>; ++l) {
      const Real e = static_cast<Real>(exp_nonpositive(static_cast<double>(row[j + l]) - maximum));
      row[j + l] = e;
      sums[l] += e;
    }
  }
  const Real sum = total<Real>(sums) + static_cast<Real>(exp_nonpositive(sink - maximum));
  for (std::ptrdiff_t j = 0; j < length; ++j) row[j] = store(row[j] / sum);
  return static_cast<double>(maximum) + std::log(static_cast<double>(sum));
}

template <typename Real, typename Store>
[[gnu::always_inline]] inline void gradient_row(const Real* p, Real* d_row, std::ptrdiff_t length,
                                                double delta, double scale, Store store) {
  const Real mean = static_cast<Real>(delta), factor = static_cast<Real>(scale);
  for (std::ptrdiff_t j = 0; j < length; ++j) {
    const Real dp = store(d_row[j]);
    d_row[j] = store(store(p[j] * (dp - mean)) * factor);
  }
}

FLASHBACK_EACH_LEVEL double softmax_bf16(float* row, Visible visible, std::ptrdiff_t length, double scale,
                                         double sink) {
  return softmax_row(row, visible, length, scale, sink, ToBf16{});
}
FLASHBACK_EACH_LEVEL double softmax_f16(float* row, Visible visible, std::ptrdiff_t length, double scale,
                                        double sink) {
  return softmax_row(row, visible, length, scale, sink, ToF16{});
}
FLASHBACK_EACH_LEVEL void gradient_bf16(const float* p, float* d_row, std::ptrdiff_t length, double delta,
                                        double scale) {
  gradient_row(p, d_row, length, delta, scale, ToBf16{});
}
FLASHBACK_EACH_LEVEL void gradient_f16(const float* p, float* d_row, std::ptrdiff_t length, double delta,
                                       double scale) {
  gradient_row(p, d_row, length, delta, scale, ToF16{});
}

}  // namespace

FLASHBACK_EACH_LEVEL double softmax(double* row, Visible visible, std::ptrdiff_t length, double scale,
                                    double sink, Exact) {
  return softmax_row(row, visible, length, scale, sink, NotRounded{});
}
FLASHBACK_EACH_LEVEL void softmax_gradient(const double* p, double* d_row, std::ptrdiff_t length,
                                           double delta, double scale, Exact) {
  gradient_row(p, d_row, length, delta, scale, NotRounded{});
}

double softmax(float* row, Visible visible, std::ptrdiff_t length, double scale, double sink, Stored stored) {
  return stored.dtype == Dtype::kBf16 ? softmax_bf16(row, visible, length, scale, sink)
                                      : softmax_f16(row, visible, length, scale, sink);
}
void softmax_gradient(const float* p, float* d_row, std::ptrdiff_t length, double delta, double scale,
                      Stored stored) {
  stored.dtype == Dtype::kBf16 ? gradient_bf16(p, d_row, length, delta, scale)
                               : gradient_f16(p, d_row, length, delta, scale);
}

}  // namespace flashback::reference
