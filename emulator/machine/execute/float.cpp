// Floating-point arithmetic of f32, f32x2 and f64.
//
// Round to nearest is the host's own arithmetic, a loop that becomes vectors. The directed roundings are
// rare: they are computed in double, rounded to odd, then rounded once in their direction.
#include <cmath>

#include "emulator/machine/execute/pairs.h"
#include "emulator/machine/execute/predicates.h"
#include "emulator/machine/execute/real.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

constexpr auto add = [](auto a, auto b) { return a + b; };
constexpr auto subtract = [](auto a, auto b) { return a - b; };
constexpr auto multiply = [](auto a, auto b) { return a * b; };
constexpr auto divide = [](auto a, auto b) { return a / b; };
constexpr auto fused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto reciprocal = [](auto a) { return 1 / a; };
constexpr auto root = [](auto a) { return std::sqrt(a); };
constexpr auto negate = [](auto a) { return -a; };
constexpr auto magnitude = [](auto a) { return std::abs(a); };

// ---- f32, round to nearest

// A flushed result is judged before it is squeezed into the exponents of f32: of a product just below the
// smallest normal number nothing is left, though IEEE rounding would lift it to that number. So the operation
// is done a second time, 2^64 higher.
inline float flushed_result(float d, float raised) {
  const bool tiny = std::abs(raised) < 0x1p-62f;  // 2^-126 raised
  return flushed(tiny ? std::copysign(0.0f, d) : d);
}
constexpr float kRaise = 0x1p64f;
constexpr auto multiply_flushing = [](float a, float b) { return flushed_result(a * b, a * kRaise * b); };
constexpr auto fused_flushing = [](float a, float b, float c) {
  return flushed_result(std::fma(a, b, c), std::fma(a * kRaise, b, c * kRaise));
};

template <auto op, bool ftz, bool sat>
constexpr auto f32 = [](auto... sources) {
  const float d = ftz ? flushed(op(flushed(sources)...)) : op(sources...);
  if constexpr (sat) return saturated(d);
  return canonical(d);
};

// `flushing` is the operation of `.ftz` where it differs.
template <template <auto f> class Shape, auto op, auto flushing = op>
Body select_f32(Match& match) {
  const bool sat = match.has(".sat");
  if (match.has(".ftz"))
    return sat ? Shape<f32<flushing, true, true>>::body : Shape<f32<flushing, true, false>>::body;
  return sat ? Shape<f32<op, false, true>>::body : Shape<f32<op, false, false>>::body;
}

template <auto f>
struct Unary {
  static constexpr Body body = unary<float, float, f>;
};
template <auto f>
struct Binary {
  static constexpr Body body = binary<float, float, float, f>;
};
template <auto f>
struct Ternary {
  static constexpr Body body = ternary<float, float, float, float, f>;
};

// Two numbers a lane in a 64 bit register.
template <auto f>
struct BinaryPairs {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    float* d = warp.lanes<float>(step.d);
    const float* a = warp.lanes<float>(step.a);
    const float* b = warp.lanes<float>(step.b);
    each_of_pairs(mask, [&](int i) { d[i] = f(a[i], b[i]); });
  }
};
template <auto f>
struct TernaryPairs {
  static void body(Warp& warp, const Step& step, LaneMask mask) {
    float* d = warp.lanes<float>(step.d);
    const float* a = warp.lanes<float>(step.a);
    const float* b = warp.lanes<float>(step.b);
    const float* c = warp.lanes<float>(step.c);
    each_of_pairs(mask, [&](int i) { d[i] = f(a[i], b[i], c[i]); });
  }
};

// Sign and magnitude only, but a NaN becomes the canonical one.
template <auto op>
Body select_sign(Match& match) {
  if (match.has(".ftz")) return unary<float, float, [](float a) { return canonical(flushed(op(a))); }>;
  return unary<float, float, [](float a) { return canonical(op(a)); }>;
}

// f64 keeps the payload of a NaN, also its sign; of several NaNs that of the last source.
template <auto op>
constexpr auto f64 = [](auto... sources) {
  double nan = 0;
  ((nan = sources != sources ? sources : nan), ...);
  const double result = op(sources...);
  return nan != nan ? quiet(nan) : result;
};

// fma: that of the second factor before that of the summand.
constexpr auto f64_fused = [](double a, double b, double c) {
  return b != b ? quiet(b) : f64<fused>(a, b, c);
};

// The manual's order: the sign of a, the magnitude of b.
constexpr auto copy_sign = [](auto a, auto b) { return std::copysign(b, a); };

template <class T, auto is>
void test(Warp& warp, const Step& step, LaneMask mask) {
  const T* a = warp.lanes<T>(step.a);
  warp.set_predicate(step.d, collect([&](int l) { return is(std::fpclassify(a[l])); }), mask);
}
template <class T>
Body select_test(Match& match) {
  const std::string_view name = match.choice(0);
  if (name == "infinite") return test<T, [](int c) { return c == FP_INFINITE; }>;
  if (name == "number") return test<T, [](int c) { return c != FP_NAN; }>;
  if (name == "notanumber") return test<T, [](int c) { return c == FP_NAN; }>;
  if (name == "normal") return test<T, [](int c) { return c == FP_NORMAL || c == FP_ZERO; }>;
  if (name == "subnormal") return test<T, [](int c) { return c == FP_SUBNORMAL; }>;
  return test<T, [](int c) { return c != FP_NAN && c != FP_INFINITE; }>;
}

// ---- f32, directed

// What such a step carries in its immediate.
struct Directed {
  Rounding rounding = Rounding::kNearest;
  bool ftz = false, sat = false, pairs = false;
};

Body with_directions(Match& match, Body body) {
  const std::string_view name = match.choice(0);
  const Directed directed{name == "rz"   ? Rounding::kZero
                          : name == "rm" ? Rounding::kDown
                                         : Rounding::kUp,
                          match.has(".ftz"), match.has(".sat"), match.has(".f32x2")};
  match.step().immediate = std::bit_cast<std::int32_t>(directed);
  return body;
}

constexpr auto exact_sum = [](Rounding rounding, double a, double b) {
  return signed_zero(odd_sum(a, b), a, b, rounding);
};
constexpr auto exact_difference = [](Rounding rounding, double a, double b) {
  return exact_sum(rounding, a, -b);
};
constexpr auto exact_product = [](Rounding, double a, double b) { return a * b; };
constexpr auto exact_fused = [](Rounding rounding, double a, double b, double c) {
  return exact_sum(rounding, a * b, c);
};
constexpr auto exact_quotient = [](Rounding, double a, double b) { return odd_quotient(a, b); };
constexpr auto exact_reciprocal = [](Rounding, double a) { return odd_quotient(1, a); };
constexpr auto exact_root = [](Rounding, double a) { return odd_root(a); };

template <auto exact, class... Sources>
void directed(Warp& warp, const Step& step, LaneMask mask, Sources... sources) {
  const Directed how = std::bit_cast<Directed>(std::int32_t(step.immediate));
  float* d = warp.lanes<float>(step.d);
  auto element = [&](int i) {
    auto source = [&](const float* s) { return double(how.ftz ? flushed(s[i]) : s[i]); };
    const double result = exact(how.rounding, source(sources)...);
    float x = float(round_to(result, kBinary32, how.rounding));
    if (how.ftz && is_tiny(result, how.rounding)) x = std::copysign(0.0f, x);
    d[i] = how.sat ? saturated(x) : canonical(x);
  };
  if (how.pairs) {
    each_of_pairs(mask, element);
  } else {
    each_lane(mask, element);
  }
}

template <auto exact>
Body select_directed_1(Match& match) {
  return with_directions(match, [](Warp& warp, const Step& step, LaneMask mask) {
    directed<exact>(warp, step, mask, warp.lanes<float>(step.a));
  });
}
template <auto exact>
Body select_directed_2(Match& match) {
  return with_directions(match, [](Warp& warp, const Step& step, LaneMask mask) {
    directed<exact>(warp, step, mask, warp.lanes<float>(step.a), warp.lanes<float>(step.b));
  });
}
template <auto exact>
Body select_directed_3(Match& match) {
  return with_directions(match, [](Warp& warp, const Step& step, LaneMask mask) {
    directed<exact>(warp, step, mask, warp.lanes<float>(step.a), warp.lanes<float>(step.b),
                    warp.lanes<float>(step.c));
  });
}

constexpr std::string_view kTwo = "d:r32, a:r32", kThree = "d:r32, a:r32, b:r32";
constexpr std::string_view kFour = "d:r32, a:r32, b:r32, c:r32";
constexpr std::string_view kThreePairs = "d:r64, a:r64, b:r64", kFourPairs = "d:r64, a:r64, b:r64, c:r64";

constexpr Row kRows[] = {
    {"add{.rn}{.ftz}{.sat}.f32", kThree, select_f32<Binary, add>},
    {"sub{.rn}{.ftz}{.sat}.f32", kThree, select_f32<Binary, subtract>},
    {"mul{.rn}{.ftz}{.sat}.f32", kThree, select_f32<Binary, multiply, multiply_flushing>},
    {"fma.rn{.ftz}{.sat}.f32", kFour, select_f32<Ternary, fused, fused_flushing>},
    {"mad.rn{.ftz}{.sat}.f32", kFour, select_f32<Ternary, fused, fused_flushing>},
    {"div.rn{.ftz}.f32", kThree, select_f32<Binary, divide>},
    {"rcp.rn{.ftz}.f32", kTwo, select_f32<Unary, reciprocal>},
    {"sqrt.rn{.ftz}.f32", kTwo, select_f32<Unary, root>},
    {"add(.rz|.rm|.rp){.ftz}{.sat}.f32", kThree, select_directed_2<exact_sum>},
    {"sub(.rz|.rm|.rp){.ftz}{.sat}.f32", kThree, select_directed_2<exact_difference>},
    {"mul(.rz|.rm|.rp){.ftz}{.sat}.f32", kThree, select_directed_2<exact_product>},
    {"fma(.rz|.rm|.rp){.ftz}{.sat}.f32", kFour, select_directed_3<exact_fused>},
    {"mad(.rz|.rm|.rp){.ftz}{.sat}.f32", kFour, select_directed_3<exact_fused>},
    {"div(.rz|.rm|.rp){.ftz}.f32", kThree, select_directed_2<exact_quotient>},
    {"rcp(.rz|.rm|.rp){.ftz}.f32", kTwo, select_directed_1<exact_reciprocal>},
    {"sqrt(.rz|.rm|.rp){.ftz}.f32", kTwo, select_directed_1<exact_root>},

    {"add{.rn}{.ftz}.f32x2", kThreePairs, select_f32<BinaryPairs, add>},
    {"sub{.rn}{.ftz}.f32x2", kThreePairs, select_f32<BinaryPairs, subtract>},
    {"mul{.rn}{.ftz}.f32x2", kThreePairs, select_f32<BinaryPairs, multiply, multiply_flushing>},
    {"fma.rn{.ftz}.f32x2", kFourPairs, select_f32<TernaryPairs, fused, fused_flushing>},
    {"add(.rz|.rm|.rp){.ftz}.f32x2", kThreePairs, select_directed_2<exact_sum>},
    {"sub(.rz|.rm|.rp){.ftz}.f32x2", kThreePairs, select_directed_2<exact_difference>},
    {"mul(.rz|.rm|.rp){.ftz}.f32x2", kThreePairs, select_directed_2<exact_product>},
    {"fma(.rz|.rm|.rp){.ftz}.f32x2", kFourPairs, select_directed_3<exact_fused>},

    {"neg{.ftz}.f32", kTwo, select_sign<negate>},
    {"abs{.ftz}.f32", kTwo, select_sign<magnitude>},
    {"copysign.f32", kThree, two<float, copy_sign>},
    {"testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal).f32", "d:p, a:r32", select_test<float>},

    {"add{.rn}.f64", kThreePairs, two<double, f64<add>>},
    {"sub{.rn}.f64", kThreePairs, two<double, f64<subtract>>},
    {"mul{.rn}.f64", kThreePairs, two<double, f64<multiply>>},
    {"fma.rn.f64", kFourPairs, three<double, f64_fused>},
    {"mad.rn.f64", kFourPairs, three<double, f64_fused>},
    {"div.rn.f64", kThreePairs, two<double, divide>},
    {"rcp.rn.f64", "d:r64, a:r64", one<double, reciprocal>},
    {"sqrt.rn.f64", "d:r64, a:r64", one<double, root>},
    {"neg.f64", "d:r64, a:r64", one<double, f64<negate>>},
    {"abs.f64", "d:r64, a:r64", one<double, f64<magnitude>>},
    {"copysign.f64", kThreePairs, two<double, copy_sign>},
    {"testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal).f64", "d:p, a:r64",
     select_test<double>},
};

}  // namespace

std::span<const Row> float_rows() {
  return kRows;
}

}  // namespace flashback::emulator
