// Powers of two without the special function unit, which does sixteen a cycle and is what a forward kernel
// waits for.
#pragma once

#include "kernels/ptx/math.cuh"
#include "kernels/shared/exp2_polynomial.h"

namespace flashback::shared {

// 2^x of two floats below 127 on the FMA pipe: x = n + f with n the nearest integer, a polynomial for 2^f, n
// added to its exponent. Below -126 the result is that of -126, at most 2^-125.5, or zero.
__device__ inline void exp2_by_polynomial(float& x, float& y) {
  // Adding it leaves the nearest integer in the low bits of the sum.
  constexpr float kToInteger = 0x1.8p23f;
  const auto both = [](float c) { return ptx::pair(c, c); };
  const ptx::F32x2 to_integer = both(kToInteger);
  const ptx::F32x2 v = ptx::pair(fmaxf(x, -126.0f), fmaxf(y, -126.0f));
  const ptx::F32x2 shifted = ptx::add(v, to_integer);
  const ptx::F32x2 f = ptx::subtract(v, ptx::subtract(shifted, to_integer));
  ptx::F32x2 power = both(exp2_coefficient(kExp2Degree));
#pragma unroll
  for (int i = kExp2Degree - 1; i >= 0; --i) power = ptx::multiply_add(power, f, both(exp2_coefficient(i)));
  float n_x, n_y, p_x, p_y;
  ptx::unpair(n_x, n_y, shifted);
  ptx::unpair(p_x, p_y, power);
  const auto raised = [](float p, float n) {
    return __uint_as_float(__float_as_uint(p) + (__float_as_uint(n) << 23));
  };
  x = raised(p_x, n_x);
  y = raised(p_y, n_y);
}

}  // namespace flashback::shared
