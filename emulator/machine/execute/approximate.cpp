// The approximate functions: ex2, rcp, rsqrt, sqrt, lg2, sin, cos, tanh, div. Each result lies within the
// manual's bound of the true one; where the hardware is coarser than that, it differs in the last places.
#include "emulator/machine/execute/approximate.h"

#include <cmath>

#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

constexpr auto power_of_two = [](float a) { return approximate_exp2(a); };
constexpr auto reciprocal = [](float a) { return 1 / a; };
constexpr auto root = [](float a) { return std::sqrt(a); };
constexpr auto reciprocal_root = [](float a) { return float(1 / std::sqrt(double(a))); };
constexpr auto logarithm = [](float a) { return float(std::log2(double(a))); };
constexpr auto sine = [](float a) { return float(std::sin(double(a))); };
constexpr auto cosine = [](float a) { return float(std::cos(double(a))); };
constexpr auto tangent = [](float a) { return float(std::tanh(double(a))); };
constexpr auto quotient = [](float a, float b) { return a / b; };
// a * (1/b), whose reciprocal is flushed for the largest b.
constexpr auto fast_quotient = [](float a, float b) {
  if (std::abs(b) > 0x1p126f && std::isfinite(b)) return a * std::copysign(0.0f, b);
  return a / b;
};

template <auto op, bool ftz>
constexpr auto f32 =
    [](auto... sources) { return canonical(ftz ? flushed(op(flushed(sources)...)) : op(sources...)); };
template <auto op>
Body select_1(Match& match) {
  return match.has(".ftz") ? unary<float, float, f32<op, true>> : unary<float, float, f32<op, false>>;
}
template <auto op>
Body select_2(Match& match) {
  return match.has(".ftz") ? binary<float, float, float, f32<op, true>>
                           : binary<float, float, float, f32<op, false>>;
}

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
    {"ex2.approx{.ftz}.f32", kTwo, select_1<power_of_two>},
    {"lg2.approx{.ftz}.f32", kTwo, select_1<logarithm>},
    {"rcp.approx{.ftz}.f32", kTwo, select_1<reciprocal>},
    {"rsqrt.approx{.ftz}.f32", kTwo, select_1<reciprocal_root>},
    {"sqrt.approx{.ftz}.f32", kTwo, select_1<root>},
    {"sin.approx{.ftz}.f32", kTwo, select_1<sine>},
    {"cos.approx{.ftz}.f32", kTwo, select_1<cosine>},
    {"tanh.approx.f32", kTwo, select_1<tangent>},
    {"div.full{.ftz}.f32", kThree, select_2<quotient>},
    {"div.approx{.ftz}.f32", kThree, select_2<fast_quotient>},
    {"rcp.approx.ftz.f64", "d:r64, a:r64", one<double, upper_half<reciprocal_64>>},
    {"rsqrt.approx.ftz.f64", "d:r64, a:r64", one<double, upper_half<reciprocal_root_64>>},
};

}  // namespace

std::span<const Row> approximate_rows() {
  return kRows;
}

}  // namespace flashback::emulator
