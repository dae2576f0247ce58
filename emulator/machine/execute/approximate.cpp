// The approximate functions. ex2, rcp, rsqrt, sqrt, lg2 and div give what an H200 gives, bit by bit: its
// multi-function unit, with the scaling that ptxas puts around it for sources and results outside its range.
// sin, cos and tanh lie within the manual's bound of the true value; where the hardware is coarser, they
// differ in the last places.
#include <cmath>

#include "emulator/machine/execute/multifunction.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

bool is_subnormal_or_zero(float x) {
  return std::abs(x) < 0x1p-126f;
}

template <bool ftz>
constexpr auto power_of_two = [](float a) {
  if (ftz) return unit_exp2(a);
  const bool below = a < -126;  // its square root is normal
  const float power = unit_exp2(below ? a * 0.5f : a);
  return below ? power * power : power;
};
template <bool ftz>
constexpr auto reciprocal = [](float a) {
  if (ftz) return unit_reciprocal(a);
  const float scale = is_subnormal_or_zero(a) ? 0x1p24f : std::abs(a) > 0x1p126f ? 0.25f : 1.0f;
  return canonical(unit_reciprocal(a * scale) * scale);
};
template <bool ftz>
constexpr auto root = [](float a) {
  return !ftz && is_subnormal_or_zero(a) ? unit_root(a * 0x1p24f) * 0x1p-12f : unit_root(a);
};
template <bool ftz>
constexpr auto reciprocal_root = [](float a) {
  return !ftz && is_subnormal_or_zero(a) ? unit_reciprocal_root(a * 0x1p24f) * 0x1p12f
                                         : unit_reciprocal_root(a);
};
template <bool ftz>
constexpr auto logarithm = [](float a) {
  return !ftz && is_subnormal_or_zero(a) ? unit_logarithm(a * 0x1p24f) - 24 : unit_logarithm(a);
};
template <bool ftz>
float product(float a, float b) {
  return canonical(ftz ? flushed(flushed(a) * flushed(b)) : a * b);
}
// a * (1/b): the reciprocal is flushed for the largest b.
template <bool ftz>
constexpr auto fast_quotient = [](float a, float b) {
  const float scale = !ftz && is_subnormal_or_zero(b) ? 0x1p24f : 1.0f;
  return product<ftz>(a * scale, unit_reciprocal(b * scale));
};
template <bool ftz>
constexpr auto quotient = [](float a, float b) {
  const bool large = std::abs(b) > 0x1p126f;
  return large ? fast_quotient<ftz>(product<ftz>(a, 0.25f), b * 0.25f) : fast_quotient<ftz>(a, b);
};
constexpr auto sine = [](float a) { return float(std::sin(double(a))); };
constexpr auto cosine = [](float a) { return float(std::cos(double(a))); };
constexpr auto tangent = [](float a) { return canonical(float(std::tanh(double(a)))); };

template <auto with_ftz, auto without>
Body select_1(Match& match) {
  return match.has(".ftz") ? unary<float, float, with_ftz> : unary<float, float, without>;
}
template <auto with_ftz, auto without>
Body select_2(Match& match) {
  return match.has(".ftz") ? binary<float, float, float, with_ftz> : binary<float, float, float, without>;
}
template <auto op, bool ftz>
constexpr auto of_circle = [](float a) { return canonical(ftz ? flushed(op(flushed(a))) : op(a)); };

// Of f64: the upper half of the result, from the upper half of the source; subnormals count as zero.
template <auto op>
constexpr auto upper_half = [](double a) {
  auto upper = [](double x) { return std::bit_cast<double>(std::bit_cast<u64>(x) & ~u64{0xffffffff}); };
  auto flush = [](double x) { return std::abs(x) < 0x1p-1022 ? std::copysign(0.0, x) : x; };
  return upper(flush(op(flush(upper(a)))));
};
constexpr auto reciprocal_64 = [](double a) { return 1 / a; };
constexpr auto reciprocal_root_64 = [](double a) { return 1 / std::sqrt(a); };

constexpr std::string_view kTwo = "d:r32, a:r32", kThree = "d:r32, a:r32, b:r32";

constexpr Row kRows[] = {
    {"ex2.approx{.ftz}.f32", kTwo, select_1<power_of_two<true>, power_of_two<false>>},
    {"lg2.approx{.ftz}.f32", kTwo, select_1<logarithm<true>, logarithm<false>>},
    {"rcp.approx{.ftz}.f32", kTwo, select_1<reciprocal<true>, reciprocal<false>>},
    {"rsqrt.approx{.ftz}.f32", kTwo, select_1<reciprocal_root<true>, reciprocal_root<false>>},
    {"sqrt.approx{.ftz}.f32", kTwo, select_1<root<true>, root<false>>},
    {"sin.approx{.ftz}.f32", kTwo, select_1<of_circle<sine, true>, of_circle<sine, false>>},
    {"cos.approx{.ftz}.f32", kTwo, select_1<of_circle<cosine, true>, of_circle<cosine, false>>},
    {"tanh.approx.f32", kTwo, one<float, tangent>},
    {"div.full{.ftz}.f32", kThree, select_2<quotient<true>, quotient<false>>},
    {"div.approx{.ftz}.f32", kThree, select_2<fast_quotient<true>, fast_quotient<false>>},
    {"rcp.approx.ftz.f64", "d:r64, a:r64", one<double, upper_half<reciprocal_64>>},
    {"rsqrt.approx.ftz.f64", "d:r64, a:r64", one<double, upper_half<reciprocal_root_64>>},
};

}  // namespace

std::span<const Row> approximate_rows() {
  return kRows;
}

}  // namespace flashback::emulator
