// Arithmetic of f16, f16x2, bf16, bf16x2.
#include "emulator/machine/execute/half.h"

#include "emulator/machine/execute/multifunction.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

constexpr auto add = [](double a, double b) { return signed_zero(odd_sum(a, b), a, b, Rounding::kNearest); };
constexpr auto subtract = [](double a, double b) { return add(a, -b); };
constexpr auto multiply = [](double a, double b) { return a * b; };
constexpr auto fused = [](double a, double b, double c) { return add(a * b, c); };
constexpr auto tangent = [](double a) { return std::tanh(a); };

// Sign and magnitude: bits, in one half or in both; but a NaN becomes the canonical one.
template <class H, bool clears>
void change_sign(Warp& warp, const Step& step, LaneMask mask) {
  const HalfModifiers how = std::bit_cast<HalfModifiers>(std::int32_t(step.immediate));
  u16* d = warp.lanes<u16>(step.d);
  const u16* a = warp.lanes<u16>(step.a);
  auto element = [&](int i) {
    const u16 kept = how.ftz && (a[i] & 0x7c00) == 0 ? u16(a[i] & 0x8000) : a[i];
    const bool nan = H::decode(kept) != H::decode(kept);
    d[i] = nan ? kNaN16 : clears ? u16(kept & 0x7fff) : u16(kept ^ 0x8000);
  };
  if (how.packed) {
    each_of_pairs(mask, element);
  } else {
    each_lane(mask, element);
  }
}
template <class H, bool clears>
Body select_sign(Match& match) {
  const HalfModifiers how{match.bytes('d') == 4, match.has(".ftz")};
  match.step().immediate = std::bit_cast<std::int32_t>(how);
  return change_sign<H, clears>;
}

// ex2.approx: the f32 result cut off; from 2^16 on infinite in f16.
template <class H>
u16 power_of_two(u16 a) {
  const float x = H::decode(a);
  if (std::is_same_v<H, Bf16>) return u16(bits_of(unit_exp2(x)) >> 16);
  if (x != x) return kNaN16;
  return x >= 16 ? u16(0x7c00) : u16(_cvtss_sh(unit_exp2(x), _MM_FROUND_TO_ZERO));
}
template <class H>
void powers_of_two(Warp& warp, const Step& step, LaneMask mask) {
  u16* d = warp.lanes<u16>(step.d);
  const u16* a = warp.lanes<u16>(step.a);
  each_lane(mask, [&](int l) { d[l] = power_of_two<H>(a[l]); });
}
template <class H>
void powers_of_two_pairs(Warp& warp, const Step& step, LaneMask mask) {
  u16* d = warp.lanes<u16>(step.d);
  const u16* a = warp.lanes<u16>(step.a);
  each_of_pairs(mask, [&](int i) { d[i] = power_of_two<H>(a[i]); });
}

constexpr std::string_view kTwo16 = "d:r16, a:r16", kTwo32 = "d:r32, a:r32";
constexpr std::string_view kThree16 = "d:r16, a:r16, b:r16", kThree32 = "d:r32, a:r32, b:r32";
constexpr std::string_view kFour16 = "d:r16, a:r16, b:r16, c:r16", kFour32 = "d:r32, a:r32, b:r32, c:r32";

constexpr Row kRows[] = {
    {"add{.rn}{.ftz}{.sat}.f16", kThree16, half_body<F16, add>},
    {"sub{.rn}{.ftz}{.sat}.f16", kThree16, half_body<F16, subtract>},
    {"mul{.rn}{.ftz}{.sat}.f16", kThree16, half_body<F16, multiply>},
    {"fma.rn{.ftz}{.sat|.relu}.f16", kFour16, half_body<F16, fused>},
    {"add{.rn}{.ftz}{.sat}.f16x2", kThree32, half_body<F16, add>},
    {"sub{.rn}{.ftz}{.sat}.f16x2", kThree32, half_body<F16, subtract>},
    {"mul{.rn}{.ftz}{.sat}.f16x2", kThree32, half_body<F16, multiply>},
    {"fma.rn{.ftz}{.sat|.relu}.f16x2", kFour32, half_body<F16, fused>},
    {"add{.rn}.bf16", kThree16, half_body<Bf16, add>},
    {"sub{.rn}.bf16", kThree16, half_body<Bf16, subtract>},
    {"mul{.rn}.bf16", kThree16, half_body<Bf16, multiply>},
    {"fma.rn{.relu}.bf16", kFour16, half_body<Bf16, fused>},
    {"add{.rn}.bf16x2", kThree32, half_body<Bf16, add>},
    {"sub{.rn}.bf16x2", kThree32, half_body<Bf16, subtract>},
    {"mul{.rn}.bf16x2", kThree32, half_body<Bf16, multiply>},
    {"fma.rn{.relu}.bf16x2", kFour32, half_body<Bf16, fused>},
    {"neg{.ftz}.f16", kTwo16, select_sign<F16, false>},
    {"neg{.ftz}.f16x2", kTwo32, select_sign<F16, false>},
    {"neg.bf16", kTwo16, select_sign<Bf16, false>},
    {"neg.bf16x2", kTwo32, select_sign<Bf16, false>},
    {"abs{.ftz}.f16", kTwo16, select_sign<F16, true>},
    {"abs{.ftz}.f16x2", kTwo32, select_sign<F16, true>},
    {"abs.bf16", kTwo16, select_sign<Bf16, true>},
    {"abs.bf16x2", kTwo32, select_sign<Bf16, true>},
    {"ex2.approx.f16", kTwo16, always<powers_of_two<F16>>},
    {"ex2.approx.f16x2", kTwo32, always<powers_of_two_pairs<F16>>},
    {"ex2.approx.ftz.bf16", kTwo16, always<powers_of_two<Bf16>>},
    {"ex2.approx.ftz.bf16x2", kTwo32, always<powers_of_two_pairs<Bf16>>},
    {"tanh.approx.f16", kTwo16, half_body<F16, tangent>},
    {"tanh.approx.f16x2", kTwo32, half_body<F16, tangent>},
    {"tanh.approx.bf16", kTwo16, half_body<Bf16, tangent>},
    {"tanh.approx.bf16x2", kTwo32, half_body<Bf16, tangent>},
};

}  // namespace

std::span<const Row> half_rows() {
  return kRows;
}

}  // namespace flashback::emulator
