// Two floats at a time, the special function unit, and 16-bit conversion.
#pragma once

#include <cstdint>

namespace flashback::ptx {

// Two floats in one 64-bit register; the first is the low half.
using F32x2 = std::uint64_t;

__device__ inline F32x2 pair(float low, float high) {
  F32x2 d;
  asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "f"(low), "f"(high));
  return d;
}

__device__ inline void unpair(float& low, float& high, F32x2 a) {
  asm("mov.b64 {%0, %1}, %2;" : "=f"(low), "=f"(high) : "l"(a));
}

__device__ inline F32x2 multiply_add(F32x2 a, F32x2 b, F32x2 c) {
  F32x2 d;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(a), "l"(b), "l"(c));
  return d;
}

__device__ inline F32x2 add(F32x2 a, F32x2 b) {
  F32x2 d;
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

__device__ inline F32x2 multiply(F32x2 a, F32x2 b) {
  F32x2 d;
  asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

__device__ inline F32x2 subtract(F32x2 a, F32x2 b) {
  F32x2 d;
  asm("sub.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

// 2^x; subnormal results are zero, 2^-inf is 0.
__device__ inline float exp2(float x) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

// log2 x, to 2^-22 or the last bits, whichever is more; a subnormal x is zero. It stays where it stands:
// moved up to where its operand is made, it costs a kernel short of registers one more.
__device__ inline float log2(float x) {
  float d;
  asm volatile("lg2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

// Two floats, rounded to nearest even; the first is the low half.
__device__ inline std::uint32_t to_bf16x2(float low, float high) {
  std::uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

__device__ inline std::uint32_t to_f16x2(float low, float high) {
  std::uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

__device__ inline void from_f16x2(float& low, float& high, std::uint32_t word) {
  asm("{\n"
      ".reg .b16 l, h;\n"
      "mov.b32 {l, h}, %2;\n"
      "cvt.f32.f16 %0, l;\n"
      "cvt.f32.f16 %1, h;\n"
      "}"
      : "=f"(low), "=f"(high)
      : "r"(word));
}

}  // namespace flashback::ptx
