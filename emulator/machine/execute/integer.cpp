// Integer arithmetic, logic and shifts.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
inline constexpr u32 kBits = 8 * sizeof(T);

// Of twice the width, with T's sign.
template <class T>
struct Wider;
template <>
struct Wider<u16> {
  using type = u32;
};
template <>
struct Wider<s16> {
  using type = s32;
};
template <>
struct Wider<u32> {
  using type = u64;
};
template <>
struct Wider<s32> {
  using type = s64;
};
template <>
struct Wider<u64> {
  using type = unsigned __int128;
};
template <>
struct Wider<s64> {
  using type = __int128;
};
template <class T>
using Wide = typename Wider<T>::type;

// Sums and products wrap: they are taken in unsigned words of at least 32 bits, whatever the type.
constexpr auto add = [](auto a, auto b) { return decltype(a)(a + b); };
constexpr auto subtract = [](auto a, auto b) { return decltype(a)(a - b); };
constexpr auto multiply_low = [](auto a, auto b) { return decltype(a)(u64{a} * b); };
constexpr auto multiply_add_low = [](auto a, auto b, auto c) { return decltype(a)(u64{a} * b + c); };
constexpr auto multiply_low_32 = [](u32 a, u32 b) { return a * b; };
constexpr auto multiply_add_low_32 = [](u32 a, u32 b, u32 c) { return a * b + c; };
constexpr auto multiply_high = [](auto a, auto b) {
  using T = decltype(a);
  return T(Wide<T>(a) * b >> kBits<T>);
};
constexpr auto multiply_add_high = [](auto a, auto b, auto c) {
  using T = decltype(a);
  return T(Unsigned<T>(multiply_high(a, b)) + Unsigned<T>(c));
};
constexpr auto add_saturating = [](s32 a, s32 b) {
  return s32(std::clamp<s64>(s64{a} + b, std::numeric_limits<s32>::min(), std::numeric_limits<s32>::max()));
};
constexpr auto subtract_saturating = [](s32 a, s32 b) {
  return s32(std::clamp<s64>(s64{a} - b, std::numeric_limits<s32>::min(), std::numeric_limits<s32>::max()));
};

template <class T>
constexpr auto multiply_wide = always<binary<Wide<T>, T, T, [](T a, T b) { return Wide<T>(a) * b; }>>;
template <class T>
constexpr auto multiply_add_wide =
    always<ternary<Unsigned<Wide<T>>, T, T, Unsigned<Wide<T>>,
                   [](T a, T b, Unsigned<Wide<T>> c) { return Unsigned<Wide<T>>(Wide<T>(a) * b) + c; }>>;

// The manual leaves division by zero to the machine: a quotient of all ones, the dividend as remainder. The
// smallest number over -1 wraps.
constexpr auto divide = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return T(-1);
  if (std::is_signed_v<T> && b == T(-1)) return T(-Unsigned<T>(a));
  return T(a / b);
};
constexpr auto remainder = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == T(-1)) return T(0);
  return T(a % b);
};

constexpr auto minimum = [](auto a, auto b) { return std::min(a, b); };
constexpr auto maximum = [](auto a, auto b) { return std::max(a, b); };
constexpr auto negate = [](auto a) { return decltype(a)(0 - a); };
constexpr auto absolute = [](auto a) {
  using U = Unsigned<decltype(a)>;
  return decltype(a)(a < 0 ? U(0 - U(a)) : U(a));
};

constexpr auto bit_and = [](auto a, auto b) { return decltype(a)(a & b); };
constexpr auto bit_or = [](auto a, auto b) { return decltype(a)(a | b); };
constexpr auto bit_xor = [](auto a, auto b) { return decltype(a)(a ^ b); };
constexpr auto bit_not = [](auto a) { return decltype(a)(~a); };
constexpr auto is_zero = [](auto a) { return decltype(a)(a == 0); };

// Shifts by the width and more shift everything out.
template <class T>
constexpr auto shift_left =
    always<binary<T, T, u32, [](T a, u32 b) { return b < kBits<T> ? T(a << b) : T(0); }>>;
template <class T>
constexpr auto shift_right = always<binary<T, T, u32, [](T a, u32 b) {
  if constexpr (std::is_signed_v<T>) {
    return T(a >> std::min(b, kBits<T> - 1));
  } else {
    return b < kBits<T> ? T(a >> b) : T(0);
  }
}>>;

// The word that remains of b:a (b the high one) shifted by 0 to 32.
constexpr auto funnel_left = [](u32 a, u32 b, u32 n) { return u32((u64{b} << 32 | a) << n >> 32); };
constexpr auto funnel_right = [](u32 a, u32 b, u32 n) { return u32((u64{b} << 32 | a) >> n); };
constexpr auto funnel_left_wrap = [](u32 a, u32 b, u32 c) { return funnel_left(a, b, c & 31); };
constexpr auto funnel_left_clamp = [](u32 a, u32 b, u32 c) { return funnel_left(a, b, std::min(c, 32u)); };
constexpr auto funnel_right_wrap = [](u32 a, u32 b, u32 c) { return funnel_right(a, b, c & 31); };
constexpr auto funnel_right_clamp = [](u32 a, u32 b, u32 c) { return funnel_right(a, b, std::min(c, 32u)); };

template <class T>
constexpr auto population = always<unary<u32, T, [](T a) { return u32(std::popcount(a)); }>>;
template <class T>
constexpr auto leading_zeros = always<unary<u32, T, [](T a) { return u32(std::countl_zero(a)); }>>;
constexpr auto reverse_bits = [](auto a) {
  decltype(a) d = 0;
  for (u32 i = 0; i < kBits<decltype(a)>; ++i) d = d << 1 | (a >> i & 1);
  return d;
};

// Position of the highest bit that differs from the sign; with `.shiftamt` the shift that brings it to the
// top.
template <class T, bool as_shift>
constexpr auto find_bit = always<unary<u32, T, [](T a) {
  const Unsigned<T> bits = std::is_signed_v<T> && a < 0 ? ~Unsigned<T>(a) : Unsigned<T>(a);
  if (bits == 0) return ~u32{0};
  const u32 zeros = u32(std::countl_zero(bits));
  return as_shift ? zeros : kBits<T> - 1 - zeros;
}>>;

// Position and length of a field: of 32 bits the last 8 bits count, as the manual says of both; of 64 bits
// all count on an H200.
template <class T>
u32 field_extent(u32 x) {
  return sizeof(T) == 8 ? std::min(x, u32{0x10000}) : x & 0xff;
}

template <class T>
constexpr auto field_of = [](T a, u32 b, u32 c) {
  const u32 position = field_extent<T>(b), length = field_extent<T>(c), top = kBits<T> - 1;
  if (length == 0) return T(0);
  const bool sign = std::is_signed_v<T> && (Unsigned<T>(a) >> std::min(position + length - 1, top) & 1);
  const Unsigned<T> field = position > top ? Unsigned<T>(0) : Unsigned<T>(Unsigned<T>(a) >> position);
  const u32 present = position > top ? 0 : std::min(length, top + 1 - position);
  const Unsigned<T> mask = present > top ? ~Unsigned<T>(0) : (Unsigned<T>(1) << present) - 1;
  return T((field & mask) | (sign ? ~mask : Unsigned<T>(0)));
};
template <class T>
constexpr auto extract_field = always<ternary<T, T, u32, u32, field_of<T>>>;

// d = b with `length` bits from `position` on taken from a.
template <class T>
void insert_field(Warp& warp, const Step& step, LaneMask mask) {
  T* d = warp.lanes<T>(step.d);
  const T* a = warp.lanes<T>(step.a);
  const T* b = warp.lanes<T>(step.b);
  const u32* position = warp.lanes<u32>(step.c);
  const u32* length = warp.lanes<u32>(step.list[0]);
  each_lane(mask, [&](int l) {
    const u32 p = field_extent<T>(position[l]), n = field_extent<T>(length[l]);
    const T field = n >= kBits<T> ? ~T(0) : (T(1) << n) - 1;
    const T here = p >= kBits<T> ? T(0) : T(field << p);
    d[l] = (b[l] & ~here) | (p >= kBits<T> ? T(0) : T(a[l] << p) & here);
  });
}

constexpr auto mask_wrap = [](u32 a, u32 b) {
  const u32 field = (b & 31) == 0 ? 0 : (u32{1} << (b & 31)) - 1;
  return field << (a & 31);
};
constexpr auto mask_clamp = [](u32 a, u32 b) {
  const u32 field = b >= 32 ? ~u32{0} : (u32{1} << b) - 1;
  return a >= 32 ? 0 : field << a;
};

// Bit 4a + 2b + c of the table is the result for bits a, b, c.
void logic_of_three(Warp& warp, const Step& step, LaneMask mask) {
  u32* d = warp.lanes<u32>(step.d);
  const u32* a = warp.lanes<u32>(step.a);
  const u32* b = warp.lanes<u32>(step.b);
  const u32* c = warp.lanes<u32>(step.c);
  u32 row[8];  // all ones where the table has a one
  for (int i = 0; i < 8; ++i) row[i] = 0 - u32(step.immediate >> i & 1);
  each_lane(mask, [&](int l) {
    const u32 x = a[l], y = b[l], z = c[l];
    d[l] = (row[0] & ~x & ~y & ~z) | (row[1] & ~x & ~y & z) | (row[2] & ~x & y & ~z) | (row[3] & ~x & y & z) |
           (row[4] & x & ~y & ~z) | (row[5] & x & ~y & z) | (row[6] & x & y & ~z) | (row[7] & x & y & z);
  });
}
Body select_logic_of_three(Match& match) {
  const std::int64_t table = match.step().immediate;
  return table >= 0 && table <= 255 ? logic_of_three : nullptr;
}

constexpr std::string_view kTwo16 = "d:r16, a:r16", kTwo32 = "d:r32, a:r32", kTwo64 = "d:r64, a:r64";
constexpr std::string_view kThree16 = "d:r16, a:r16, b:r16", kThree32 = "d:r32, a:r32, b:r32";
constexpr std::string_view kThree64 = "d:r64, a:r64, b:r64", kFour16 = "d:r16, a:r16, b:r16, c:r16";
constexpr std::string_view kFour32 = "d:r32, a:r32, b:r32, c:r32", kFour64 = "d:r64, a:r64, b:r64, c:r64";
constexpr std::string_view kWide16 = "d:r32, a:r16, b:r16", kWide32 = "d:r64, a:r32, b:r32";
constexpr std::string_view kShift16 = "d:r16, a:r16, b:r32", kShift64 = "d:r64, a:r64, b:r32";

constexpr Row kRows[] = {
    {"add(.u16|.s16)", kThree16, two<u16, add>},
    {"add(.u32|.s32)", kThree32, two<u32, add>},
    {"add(.u64|.s64)", kThree64, two<u64, add>},
    {"add.sat.s32", kThree32, two<s32, add_saturating>},
    {"sub(.u16|.s16)", kThree16, two<u16, subtract>},
    {"sub(.u32|.s32)", kThree32, two<u32, subtract>},
    {"sub(.u64|.s64)", kThree64, two<u64, subtract>},
    {"sub.sat.s32", kThree32, two<s32, subtract_saturating>},

    {"mul.lo(.u16|.s16)", kThree16, two<u16, multiply_low>},
    {"mul.lo(.u32|.s32)", kThree32, two<u32, multiply_low_32>},
    {"mul.lo(.u64|.s64)", kThree64, two<u64, multiply_low>},
    {"mul.hi.u16", kThree16, two<u16, multiply_high>},
    {"mul.hi.s16", kThree16, two<s16, multiply_high>},
    {"mul.hi.u32", kThree32, two<u32, multiply_high>},
    {"mul.hi.s32", kThree32, two<s32, multiply_high>},
    {"mul.hi.u64", kThree64, two<u64, multiply_high>},
    {"mul.hi.s64", kThree64, two<s64, multiply_high>},
    {"mul.wide.u16", kWide16, multiply_wide<u16>},
    {"mul.wide.s16", kWide16, multiply_wide<s16>},
    {"mul.wide.u32", kWide32, multiply_wide<u32>},
    {"mul.wide.s32", kWide32, multiply_wide<s32>},

    {"mad.lo(.u16|.s16)", kFour16, three<u16, multiply_add_low>},
    {"mad.lo(.u32|.s32)", kFour32, three<u32, multiply_add_low_32>},
    {"mad.lo(.u64|.s64)", kFour64, three<u64, multiply_add_low>},
    {"mad.hi.u32", kFour32, three<u32, multiply_add_high>},
    {"mad.hi.s32", kFour32, three<s32, multiply_add_high>},
    {"mad.hi.u64", kFour64, three<u64, multiply_add_high>},
    {"mad.hi.s64", kFour64, three<s64, multiply_add_high>},
    {"mad.wide.u16", "d:r32, a:r16, b:r16, c:r32", multiply_add_wide<u16>},
    {"mad.wide.s16", "d:r32, a:r16, b:r16, c:r32", multiply_add_wide<s16>},
    {"mad.wide.u32", "d:r64, a:r32, b:r32, c:r64", multiply_add_wide<u32>},
    {"mad.wide.s32", "d:r64, a:r32, b:r32, c:r64", multiply_add_wide<s32>},

    {"div.u16", kThree16, two<u16, divide>},
    {"div.s16", kThree16, two<s16, divide>},
    {"div.u32", kThree32, two<u32, divide>},
    {"div.s32", kThree32, two<s32, divide>},
    {"div.u64", kThree64, two<u64, divide>},
    {"div.s64", kThree64, two<s64, divide>},
    {"rem.u16", kThree16, two<u16, remainder>},
    {"rem.s16", kThree16, two<s16, remainder>},
    {"rem.u32", kThree32, two<u32, remainder>},
    {"rem.s32", kThree32, two<s32, remainder>},
    {"rem.u64", kThree64, two<u64, remainder>},
    {"rem.s64", kThree64, two<s64, remainder>},

    {"min.u16", kThree16, two<u16, minimum>},
    {"min.s16", kThree16, two<s16, minimum>},
    {"min.u32", kThree32, two<u32, minimum>},
    {"min.s32", kThree32, two<s32, minimum>},
    {"min.u64", kThree64, two<u64, minimum>},
    {"min.s64", kThree64, two<s64, minimum>},
    {"max.u16", kThree16, two<u16, maximum>},
    {"max.s16", kThree16, two<s16, maximum>},
    {"max.u32", kThree32, two<u32, maximum>},
    {"max.s32", kThree32, two<s32, maximum>},
    {"max.u64", kThree64, two<u64, maximum>},
    {"max.s64", kThree64, two<s64, maximum>},
    {"neg.s16", kTwo16, one<u16, negate>},
    {"neg.s32", kTwo32, one<u32, negate>},
    {"neg.s64", kTwo64, one<u64, negate>},
    {"abs.s16", kTwo16, one<s16, absolute>},
    {"abs.s32", kTwo32, one<s32, absolute>},
    {"abs.s64", kTwo64, one<s64, absolute>},

    {"and.b16", kThree16, two<u16, bit_and>},
    {"and.b32", kThree32, two<u32, bit_and>},
    {"and.b64", kThree64, two<u64, bit_and>},
    {"or.b16", kThree16, two<u16, bit_or>},
    {"or.b32", kThree32, two<u32, bit_or>},
    {"or.b64", kThree64, two<u64, bit_or>},
    {"xor.b16", kThree16, two<u16, bit_xor>},
    {"xor.b32", kThree32, two<u32, bit_xor>},
    {"xor.b64", kThree64, two<u64, bit_xor>},
    {"not.b16", kTwo16, one<u16, bit_not>},
    {"not.b32", kTwo32, one<u32, bit_not>},
    {"not.b64", kTwo64, one<u64, bit_not>},
    {"cnot.b16", kTwo16, one<u16, is_zero>},
    {"cnot.b32", kTwo32, one<u32, is_zero>},
    {"cnot.b64", kTwo64, one<u64, is_zero>},
    {"lop3.b32", "d:r32, a:r32, b:r32, c:r32, i:imm", select_logic_of_three},

    {"shl.b16", kShift16, shift_left<u16>},
    {"shl.b32", kThree32, shift_left<u32>},
    {"shl.b64", kShift64, shift_left<u64>},
    {"shr(.b16|.u16)", kShift16, shift_right<u16>},
    {"shr(.b32|.u32)", kThree32, shift_right<u32>},
    {"shr(.b64|.u64)", kShift64, shift_right<u64>},
    {"shr.s16", kShift16, shift_right<s16>},
    {"shr.s32", kThree32, shift_right<s32>},
    {"shr.s64", kShift64, shift_right<s64>},
    {"shf.l.wrap.b32", kFour32, three<u32, funnel_left_wrap>},
    {"shf.l.clamp.b32", kFour32, three<u32, funnel_left_clamp>},
    {"shf.r.wrap.b32", kFour32, three<u32, funnel_right_wrap>},
    {"shf.r.clamp.b32", kFour32, three<u32, funnel_right_clamp>},

    {"popc.b32", kTwo32, population<u32>},
    {"popc.b64", "d:r32, a:r64", population<u64>},
    {"clz.b32", kTwo32, leading_zeros<u32>},
    {"clz.b64", "d:r32, a:r64", leading_zeros<u64>},
    {"brev.b32", kTwo32, one<u32, reverse_bits>},
    {"brev.b64", kTwo64, one<u64, reverse_bits>},
    {"bfind.u32", kTwo32, find_bit<u32, false>},
    {"bfind.s32", kTwo32, find_bit<s32, false>},
    {"bfind.u64", "d:r32, a:r64", find_bit<u64, false>},
    {"bfind.s64", "d:r32, a:r64", find_bit<s64, false>},
    {"bfind.shiftamt.u32", kTwo32, find_bit<u32, true>},
    {"bfind.shiftamt.s32", kTwo32, find_bit<s32, true>},
    {"bfind.shiftamt.u64", "d:r32, a:r64", find_bit<u64, true>},
    {"bfind.shiftamt.s64", "d:r32, a:r64", find_bit<s64, true>},
    {"bfe.u32", kFour32, extract_field<u32>},
    {"bfe.s32", kFour32, extract_field<s32>},
    {"bfe.u64", "d:r64, a:r64, b:r32, c:r32", extract_field<u64>},
    {"bfe.s64", "d:r64, a:r64, b:r32, c:r32", extract_field<s64>},
    {"bfi.b32", "d:r32, a:r32, b:r32, c:r32, l:r32", always<insert_field<u32>>},
    {"bfi.b64", "d:r64, a:r64, b:r64, c:r32, l:r32", always<insert_field<u64>>},
    {"bmsk.wrap.b32", kThree32, two<u32, mask_wrap>},
    {"bmsk.clamp.b32", kThree32, two<u32, mask_clamp>},
};

}  // namespace

std::span<const Row> integer_rows() {
  return kRows;
}

}  // namespace flashback::emulator
