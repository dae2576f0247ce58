// Shared memory by its 32-bit address, sixteen bytes at a time; and counters in global memory that CTAs
// share.
#pragma once

#include <cstdint>

namespace flashback::ptx {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// The same object in shared memory, by an address that stays in a register. Left alone, the compiler asks the
// hardware for the CTA's window (tens of cycles) wherever it needs an address.
template <typename T>
__device__ inline T& in_register(T& object) {
  std::uint32_t address = shared_address(&object);
  asm volatile("" : "+r"(address));
  return *static_cast<T*>(__cvta_shared_to_generic(address));
}

// Two f32x2 pairs: four consecutive floats.
__device__ inline void load_shared(std::uint64_t& first, std::uint64_t& second, std::uint32_t from) {
  asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "r"(from) : "memory");
}

__device__ inline void load_shared(float4& v, std::uint32_t from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(from)
               : "memory");
}

__device__ inline void store_shared(std::uint32_t to, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}

__device__ inline void store_shared(std::uint32_t to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                    std::uint32_t d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// Returns once a counter that other CTAs raise by add_release has the value: what they wrote before is
// visible then. Between two looks the thread sleeps, for 100 ns: hundreds that look without a pause slow the
// additions that they wait for.
__device__ inline void acquire_value(const std::int32_t* counter, std::int32_t value) {
  asm volatile(
      "{\n"
      ".reg .s32 now;\n"
      ".reg .pred done;\n"
      "again:\n"
      "ld.acquire.gpu.global.s32 now, [%0];\n"
      "setp.eq.s32 done, now, %1;\n"
      "@done bra reached;\n"
      "nanosleep.u32 100;\n"
      "bra again;\n"
      "reached:\n"
      "}" ::"l"(counter),
      "r"(value)
      : "memory");
}

__device__ inline void add_release(std::int32_t* counter, std::int32_t value) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}

// The counter's value before.
__device__ inline std::int32_t take_number(std::int32_t* counter) {
  std::int32_t number;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;" : "=r"(number) : "l"(counter) : "memory");
  return number;
}

}  // namespace flashback::ptx
