// cvt. The conversions that kernels repeat have loops of their own; every other one goes through a value that
// holds all of them exactly, with its modifiers in the step's immediate.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "emulator/machine/execute/real.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

enum class Type : u8 { kU8, kU16, kU32, kU64, kS8, kS16, kS32, kS64, kBf16, kF16, kF32, kF64 };
constexpr std::string_view kTypeNames[] = {"u8",  "u16", "u32",  "u64", "s8",  "s16",
                                           "s32", "s64", "bf16", "f16", "f32", "f64"};
#define ANY_TYPE "(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.bf16|.f16|.f32|.f64)"

Type type_of(std::string_view name) {
  return Type(std::find(std::begin(kTypeNames), std::end(kTypeNames), name) - std::begin(kTypeNames));
}
constexpr bool is_integer(Type type) {
  return type <= Type::kS64;
}
constexpr bool is_signed(Type type) {
  return type >= Type::kS8;
}
constexpr int bytes_of(Type type) {
  constexpr int kBytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
  return kBytes[int(type)];
}

// ---- the general conversion

struct Conversion {
  Type to, from;
  u8 to_bytes, from_bytes;  // of the registers, which may be wider than the types
  Rounding rounding;
  bool to_whole : 1, ftz : 1, sat : 1, relu : 1, satfinite : 1;  // to_whole: .rni and its like
  bool packed : 1;                                               // a to the upper half, b to the lower one
};
static_assert(sizeof(Conversion) <= sizeof(Step::immediate));

Conversion conversion_of(const Step& step) {
  Conversion c;
  std::memcpy(&c, &step.immediate, sizeof c);
  return c;
}

u64 read_register(Warp& warp, Slot slot, int bytes, int lane) {
  switch (bytes) {
    case 2:
      return warp.lanes<u16>(slot)[lane];
    case 4:
      return warp.lanes<u32>(slot)[lane];
    default:
      return warp.lanes<u64>(slot)[lane];
  }
}
void write_register(Warp& warp, Slot slot, int bytes, int lane, u64 bits) {
  switch (bytes) {
    case 2:
      warp.lanes<u16>(slot)[lane] = u16(bits);
      return;
    case 4:
      warp.lanes<u32>(slot)[lane] = u32(bits);
      return;
    default:
      warp.lanes<u64>(slot)[lane] = bits;
  }
}

__int128 integer_of(u64 bits, Type type) {
  const int unused = 64 - 8 * bytes_of(type);
  return is_signed(type) ? __int128(s64(bits << unused) >> unused) : __int128(bits << unused >> unused);
}
double number_of(u64 bits, Type type, bool ftz) {
  switch (type) {
    case Type::kBf16:
      return Bf16::decode(u16(bits));
    case Type::kF16:
      return F16::decode(u16(bits));
    case Type::kF32:
      return ftz ? flushed(float_of(u32(bits))) : float_of(u32(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

double whole(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(x);
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    default:
      return std::ceil(x);
  }
}

// In the bits of the destination's type, sign-extended for signed ones.
u64 integer_bits(__int128 value, Type type, bool clamps) {
  const int bits = 8 * bytes_of(type);
  if (clamps) {
    const __int128 least = is_signed(type) ? -(__int128(1) << (bits - 1)) : 0;
    value = std::clamp(value, least, least + (__int128(1) << bits) - 1);
  }
  return u64(integer_of(u64(value), type));
}

u64 integer_of_number(double x, const Conversion& c) {
  const int bits = 8 * bytes_of(c.to);
  if (x != x) {
    if (c.from != Type::kF64 && bits < 64) return 0;
    return u64(integer_of(u64{1} << (bits - 1), c.to));
  }
  return integer_bits(__int128(std::clamp(whole(x, c.rounding), -0x1p100, 0x1p100)), c.to, true);
}

u64 number_bits(double x, const Conversion& c) {
  if (c.sat) x = x > 0 ? std::min(x, 1.0) : 0.0;
  if (c.relu && x <= 0) x = 0;
  switch (c.to) {
    case Type::kBf16:
      return Bf16::nearest(float(x));
    case Type::kF16:
      return F16::nearest(float(x));
    case Type::kF32:
      return bits_of(canonical(float(x)));
    default:
      return std::bit_cast<u64>(x);
  }
}

std::optional<Format> format_of(Type type) {
  switch (type) {
    case Type::kBf16:
      return kBfloat16;
    case Type::kF16:
      return kBinary16;
    case Type::kF32:
      return kBinary32;
    default:
      return std::nullopt;
  }
}

double rounded_integer(__int128 value, Rounding rounding) {
  const double nearest = double(value);
  const __int128 rest = value - __int128(nearest);
  const bool up = rounding == Rounding::kUp || (rounding == Rounding::kZero && value < 0);
  const bool down = rounding == Rounding::kDown || (rounding == Rounding::kZero && value > 0);
  if (rest > 0 && up) return std::nextafter(nearest, INFINITY);
  if (rest < 0 && down) return std::nextafter(nearest, -INFINITY);
  return nearest;
}

double rounded_number(double x, const Conversion& c) {
  const std::optional<Format> format = format_of(c.to);
  if (c.to_whole) x = whole(x, c.rounding);
  if (!format) return x;
  if (c.to == Type::kF32 && c.ftz && is_tiny(x, c.rounding)) return std::copysign(0.0, x);
  const double largest = std::ldexp(2 - std::ldexp(1, 1 - format->precision), format->max_exponent);
  const double d = round_to(x, *format, c.rounding);
  return c.satfinite && std::abs(d) > largest ? std::copysign(largest, d) : d;
}

// A NaN of f64 keeps its sign and the upper bits of its payload.
u64 narrowed_nan(u64 bits, Type to) {
  const double nan = quiet(std::bit_cast<double>(bits));
  return to == Type::kF32
             ? bits_of(float(nan))
             : (bits_of(float(nan)) >> 16 & 0x8000) | 0x7c00 | (bits_of(float(nan)) >> 13 & 0x3ff);
}

u64 converted(u64 bits, const Conversion& c) {
  if (is_integer(c.from)) {
    const __int128 value = integer_of(bits, c.from);
    if (is_integer(c.to)) return integer_bits(value, c.to, c.sat);
    const std::optional<Format> format = format_of(c.to);
    return number_bits(
        format ? round_to(odd_integer(value), *format, c.rounding) : rounded_integer(value, c.rounding), c);
  }
  const double x = number_of(bits, c.from, c.ftz);
  if (x != x && c.from == Type::kF64 && (c.to == Type::kF32 || c.to == Type::kF16) && !c.sat)
    return narrowed_nan(bits, c.to);
  if (x != x && c.from == Type::kF32 && c.ftz && c.to == Type::kF64 && !c.sat)
    return std::bit_cast<u64>(double(float_of(kNaN32)));
  return is_integer(c.to) ? integer_of_number(x, c) : number_bits(rounded_number(x, c), c);
}

void convert(Warp& warp, const Step& step, LaneMask mask) {
  const Conversion c = conversion_of(step);
  each_lane(mask, [&](int l) {
    u64 d = converted(read_register(warp, step.a, c.from_bytes, l), c);
    if (c.packed) d = d << 16 | converted(read_register(warp, step.b, c.from_bytes, l), c);
    write_register(warp, step.d, c.to_bytes, l, d);
  });
}

// ---- the frequent ones

// The register of an integer type: nothing is narrower than 16 bits.
template <class T>
using Storage = std::conditional_t<sizeof(T) == 1, u16, T>;

template <class D, class A>
constexpr Body of_integers = unary<Storage<D>, Storage<A>, [](Storage<A> a) { return Storage<D>(D(A(a))); }>;
template <class D>
Body from_integer(Type from) {
  switch (from) {
    case Type::kU8:
      return of_integers<D, u8>;
    case Type::kU16:
      return of_integers<D, u16>;
    case Type::kU32:
      return of_integers<D, u32>;
    case Type::kU64:
      return of_integers<D, u64>;
    case Type::kS8:
      return of_integers<D, s8>;
    case Type::kS16:
      return of_integers<D, s16>;
    case Type::kS32:
      return of_integers<D, s32>;
    default:
      return of_integers<D, s64>;
  }
}
Body between_integers(Type to, Type from) {
  switch (to) {
    case Type::kU8:
      return from_integer<u8>(from);
    case Type::kU16:
      return from_integer<u16>(from);
    case Type::kU32:
      return from_integer<u32>(from);
    case Type::kU64:
      return from_integer<u64>(from);
    case Type::kS8:
      return from_integer<s8>(from);
    case Type::kS16:
      return from_integer<s16>(from);
    case Type::kS32:
      return from_integer<s32>(from);
    default:
      return from_integer<s64>(from);
  }
}

constexpr auto pack_bf16 = [](float a, float b) { return nearest_bf16(a) << 16 | nearest_bf16(b); };

// Eight floats a time.
inline __m128i nearest_f16(const float* from) {
  const __m256 x = _mm256_loadu_ps(from);
  const __m128i halves = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  const __m128i nan16 = _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
  return _mm_blendv_epi8(halves, _mm_set1_epi16(kNaN16), nan16);
}
void pack_f16(Warp& warp, const Step& step, LaneMask mask) {
  u32* d = warp.lanes<u32>(step.d);
  alignas(16) u16 upper[32], lower[32];
  for (int l = 0; l < 32; l += 8) {
    _mm_store_si128(reinterpret_cast<__m128i*>(upper + l), nearest_f16(warp.lanes<float>(step.a) + l));
    _mm_store_si128(reinterpret_cast<__m128i*>(lower + l), nearest_f16(warp.lanes<float>(step.b) + l));
  }
  each_lane(mask, [&](int l) { d[l] = u32{upper[l]} << 16 | lower[l]; });
}

void unpack_f16(Warp& warp, const Step& step, LaneMask mask) {
  float* d = warp.lanes<float>(step.d);
  const u16* a = warp.lanes<u16>(step.a);
  alignas(32) float wide[32];
  for (int l = 0; l < 32; l += 8) {
    _mm256_store_ps(wide + l, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + l))));
  }
  each_lane(mask, [&](int l) { d[l] = canonical(wide[l]); });
}

Body frequent_body(const Conversion& c) {
  if (c.ftz || c.sat || c.relu || c.satfinite || c.to_bytes != std::max(bytes_of(c.to), 2) ||
      c.from_bytes != std::max(bytes_of(c.from), 2)) {
    return nullptr;
  }
  const bool nearest = c.rounding == Rounding::kNearest && !c.to_whole;
  if (is_integer(c.to) && is_integer(c.from)) return between_integers(c.to, c.from);
  if (c.to == Type::kF32 && nearest) {
    if (c.from == Type::kS32) return unary<float, s32, [](s32 a) { return float(a); }>;
    if (c.from == Type::kU32) return unary<float, u32, [](u32 a) { return float(a); }>;
    if (c.from == Type::kBf16) return unary<u32, u16, [](u16 a) { return u32{a} << 16; }>;
    if (c.from == Type::kF16) return unpack_f16;
    if (c.from == Type::kF64) return unary<float, double, [](double a) { return float(a); }>;
  }
  if (c.from == Type::kF32 && nearest) {
    if (c.to == Type::kBf16) return unary<u16, float, [](float a) { return u16(nearest_bf16(a)); }>;
    if (c.to == Type::kF16) return unary<u16, float, [](float a) { return F16::nearest(a); }>;
    if (c.to == Type::kF64) return unary<double, float, [](float a) { return double(a); }>;
  }
  return nullptr;
}

// ---- selection

// The manual says where a rounding must stand and where it must not.
bool rounding_is_legal(const Conversion& c, bool has_rounding) {
  if (is_integer(c.to) && is_integer(c.from)) return !has_rounding;
  if (is_integer(c.to)) return has_rounding && c.to_whole;
  if (is_integer(c.from)) return has_rounding && !c.to_whole;
  if (c.to_whole) return bytes_of(c.to) == bytes_of(c.from) && c.to == c.from;
  const bool loses =
      bytes_of(c.to) < bytes_of(c.from) || (bytes_of(c.to) == 2 && bytes_of(c.from) == 2 && c.to != c.from);
  return has_rounding == loses;
}

Conversion conversion(Match& match, Type to, Type from) {
  const std::string_view rounding = match.choice(0);
  Conversion c{};
  c.to = to;
  c.from = from;
  c.to_bytes = u8(match.bytes('d'));
  c.from_bytes = u8(match.bytes('a'));
  c.to_whole = rounding.ends_with('i');
  const std::string_view direction = rounding.substr(0, 2);
  c.rounding = direction == "rz"   ? Rounding::kZero
               : direction == "rm" ? Rounding::kDown
               : direction == "rp" ? Rounding::kUp
                                   : Rounding::kNearest;
  c.ftz = match.has(".ftz") && to != Type::kF16;  // which leaves subnormal sources alone
  c.sat = match.has(".sat");
  c.relu = match.has(".relu");
  c.satfinite = match.has(".satfinite");
  return c;
}

Body general_body(Match& match, const Conversion& c) {
  std::memcpy(&match.step().immediate, &c, sizeof c);
  return convert;
}

Body select(Match& match) {
  const Conversion c = conversion(match, type_of(match.choice(1)), type_of(match.choice(2)));
  if (c.to_bytes < bytes_of(c.to) || c.from_bytes < bytes_of(c.from)) return nullptr;
  if (!rounding_is_legal(c, !match.choice(0).empty())) return nullptr;
  if (match.has(".ftz") && c.to != Type::kF32 && c.from != Type::kF32) return nullptr;
  if (Body body = frequent_body(c)) return body;
  return general_body(match, c);
}

Body select_halves(Match& match) {
  return general_body(match, conversion(match, type_of(match.choice(1)), Type::kF32));
}

Body select_pairs(Match& match) {
  const bool bf16 = match.choice(1) == "bf16x2";
  Conversion c = conversion(match, bf16 ? Type::kBf16 : Type::kF16, Type::kF32);
  c.packed = true;
  if (c.rounding == Rounding::kNearest && !c.relu && !c.satfinite) {
    return bf16 ? Body(binary<u32, float, float, pack_bf16>) : Body(pack_f16);
  }
  return general_body(match, c);
}

constexpr Row kRows[] = {
    {"cvt{.rni|.rzi|.rmi|.rpi|.rn|.rz|.rm|.rp}{.ftz}{.sat}" ANY_TYPE ANY_TYPE, "d:r, a:r", select},
    {"cvt(.rn|.rz){.relu}{.satfinite}(.f16|.bf16).f32", "d:r16, a:r32", select_halves},
    {"cvt(.rn|.rz){.relu}{.satfinite}(.f16x2|.bf16x2).f32", "d:r32, a:r32, b:r32", select_pairs},
};

}  // namespace

std::span<const Row> convert_rows() {
  return kRows;
}

}  // namespace flashback::emulator
