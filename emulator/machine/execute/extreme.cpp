// min and max of floating-point numbers. A NaN gives way to a number unless `.NaN` is asked for; -0 is below
// +0.
#include <cmath>

#include "emulator/machine/execute/half.h"
#include "emulator/machine/execute/real.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

// Of f32; f16 and bf16 are compared as f32, which holds them. Written as choices one after the other: a
// vector's blends.
template <bool is_max, bool nan>
inline float extreme_of(float x, float y) {
  float z = (is_max ? x > y : x < y) ? x : y;  // y where either is NaN
  const std::uint32_t equal =
      is_max ? bits_of(x) & bits_of(y) : bits_of(x) | bits_of(y);  // zeros may differ in sign
  z = x == y ? float_of(equal) : z;
  z = nan ? (x == x ? z : x) : (y == y ? z : x);
  return canonical(z);
}

// What stands before the comparison.
template <bool ftz, bool abs>
inline float prepared(float x) {
  const float kept = ftz ? flushed(x) : x;
  return abs ? std::abs(kept) : kept;
}

template <bool is_max, bool ftz, bool nan, bool xorsign>
constexpr auto of_two = [](float a, float b) {
  const float d = extreme_of<is_max, nan>(prepared<ftz, xorsign>(a), prepared<ftz, xorsign>(b));
  if constexpr (xorsign) return d == d ? float_of(bits_of(d) | ((bits_of(a) ^ bits_of(b)) & 0x80000000)) : d;
  return d;
};
template <bool is_max, bool ftz, bool nan, bool abs>
constexpr auto of_three = [](float a, float b, float c) {
  const float d = extreme_of<is_max, nan>(prepared<ftz, abs>(a), prepared<ftz, abs>(b));
  return extreme_of<is_max, nan>(d, prepared<ftz, abs>(c));
};

template <bool is_max, bool ftz, bool nan, bool abs>
Body f32_body(int sources) {
  if (sources == 2) return binary<float, float, float, of_two<is_max, ftz, nan, abs>>;
  return ternary<float, float, float, float, of_three<is_max, ftz, nan, abs>>;
}
template <bool is_max, bool ftz, bool nan>
Body f32_body(int sources, bool abs) {
  return abs ? f32_body<is_max, ftz, nan, true>(sources) : f32_body<is_max, ftz, nan, false>(sources);
}
template <bool is_max>
Body select_f32(Match& match) {
  const int sources = match.bytes('c') != 0 ? 3 : 2;
  const bool abs = match.has(".abs"), nan = match.has(".NaN");
  if (match.has(".ftz"))
    return nan ? f32_body<is_max, true, true>(sources, abs) : f32_body<is_max, true, false>(sources, abs);
  return nan ? f32_body<is_max, false, true>(sources, abs) : f32_body<is_max, false, false>(sources, abs);
}

template <bool is_max>
constexpr auto of_f64 = [](double a, double b) {
  if (a != a && b != b) return quiet(b);
  const bool zero_order = is_max ? !std::signbit(a) : std::signbit(a);
  return (is_max ? a > b : a < b) || b != b || (a == b && zero_order) ? a : b;
};

template <bool is_max, bool nan, bool xorsign>
constexpr auto of_half =
    [](double a, double b) { return double(of_two<is_max, false, nan, xorsign>(float(a), float(b))); };
template <class H, bool is_max>
Body select_half(Match& match) {
  if (match.has(".NaN")) {
    return match.has(".abs") ? half_body<H, of_half<is_max, true, true>>(match)
                             : half_body<H, of_half<is_max, true, false>>(match);
  }
  return match.has(".abs") ? half_body<H, of_half<is_max, false, true>>(match)
                           : half_body<H, of_half<is_max, false, false>>(match);
}

constexpr std::string_view kTwoOf16 = "d:r16, a:r16, b:r16", kTwoOf32 = "d:r32, a:r32, b:r32";
constexpr std::string_view kThreeOf32 = "d:r32, a:r32, b:r32, c:r32", kTwoOf64 = "d:r64, a:r64, b:r64";

constexpr Row kRows[] = {
    {"min{.ftz}{.NaN}{.xorsign.abs}.f32", kTwoOf32, select_f32<false>},
    {"max{.ftz}{.NaN}{.xorsign.abs}.f32", kTwoOf32, select_f32<true>},
    {"min{.ftz}{.NaN}{.abs}.f32", kThreeOf32, select_f32<false>},
    {"max{.ftz}{.NaN}{.abs}.f32", kThreeOf32, select_f32<true>},
    {"min.f64", kTwoOf64, two<double, of_f64<false>>},
    {"max.f64", kTwoOf64, two<double, of_f64<true>>},
    {"min{.ftz}{.NaN}{.xorsign.abs}.f16", kTwoOf16, select_half<F16, false>},
    {"max{.ftz}{.NaN}{.xorsign.abs}.f16", kTwoOf16, select_half<F16, true>},
    {"min{.ftz}{.NaN}{.xorsign.abs}.f16x2", kTwoOf32, select_half<F16, false>},
    {"max{.ftz}{.NaN}{.xorsign.abs}.f16x2", kTwoOf32, select_half<F16, true>},
    {"min{.NaN}{.xorsign.abs}.bf16", kTwoOf16, select_half<Bf16, false>},
    {"max{.NaN}{.xorsign.abs}.bf16", kTwoOf16, select_half<Bf16, true>},
    {"min{.NaN}{.xorsign.abs}.bf16x2", kTwoOf32, select_half<Bf16, false>},
    {"max{.NaN}{.xorsign.abs}.bf16x2", kTwoOf32, select_half<Bf16, true>},
};

}  // namespace

std::span<const Row> extreme_rows() {
  return kRows;
}

}  // namespace flashback::emulator
