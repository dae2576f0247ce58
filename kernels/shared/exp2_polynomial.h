// 2^f for f from -1/2 to 1/2. Plain C++: tests evaluate it as kernels do.
#pragma once

namespace flashback::shared {

// Least largest relative error among polynomials of degree 4: 2.7e-6 in fp32. Degree 3 would do for weights
// in 16 bit (7.5e-5), but the sums of the weights become lse, which is fp32.
inline constexpr int kExp2Degree = 4;
constexpr float exp2_coefficient(int power) {
  constexpr float kOf[kExp2Degree + 1] = {0x1.ffffe8p-1f, 0x1.62e0dcp-1f, 0x1.ec06dap-3f, 0x1.ca1444p-5f,
                                          0x1.3997d6p-7f};
  return kOf[power];
}

}  // namespace flashback::shared
