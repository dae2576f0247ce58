// setp and set, selp and slct, and the logic of predicates.
#include <cmath>
#include <string_view>

#include "emulator/machine/execute/predicates.h"
#include "emulator/machine/execute/real.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

// How a comparison is combined with a predicate: in the immediate.
enum Combination : std::int64_t { kAnd, kOr, kXor };

LaneMask combined(std::int64_t combination, LaneMask t, LaneMask c) {
  switch (combination) {
    case kAnd:
      return t & c;
    case kOr:
      return t | c;
    default:
      return t ^ c;
  }
}

constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return a != b; };
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };
// Of numbers: `ne` is false and `equ` true where one of them is NaN.
constexpr auto ordered_ne = [](auto a, auto b) { return (a < b) | (a > b); };
constexpr auto equ = [](auto a, auto b) { return !ordered_ne(a, b); };
constexpr auto ltu = [](auto a, auto b) { return !(a >= b); };
constexpr auto leu = [](auto a, auto b) { return !(a > b); };
constexpr auto gtu = [](auto a, auto b) { return !(a <= b); };
constexpr auto geu = [](auto a, auto b) { return !(a < b); };
constexpr auto num = [](auto a, auto b) { return (a == a) & (b == b); };
constexpr auto nan = [](auto a, auto b) { return (a != a) | (b != b); };

// Where the operands of a comparison come from.
template <class T>
struct Plain {
  static T read(const T* lanes, int l) { return lanes[l]; }
  using Stored = T;
};
struct Flushed {
  static float read(const float* lanes, int l) { return flushed(lanes[l]); }
  using Stored = float;
};
template <class H>
struct Half {
  static float read(const u16* lanes, int l) { return H::decode(lanes[l]); }
  using Stored = u16;
};
// One half of a packed register.
template <class H, int which>
struct HalfOfPair {
  static float read(const u16* lanes, int l) { return H::decode(lanes[2 * l + which]); }
  using Stored = u16;
};

template <class Source, auto compare>
LaneMask compared(Warp& warp, const Step& step) {
  const auto* a = warp.lanes<typename Source::Stored>(step.a);
  const auto* b = warp.lanes<typename Source::Stored>(step.b);
  return collect([&](int l) { return compare(Source::read(a, l), Source::read(b, l)); });
}

// p|q: q receives the comparison's complement, combined in the same way.
template <class Source, auto compare>
void set_predicates(Warp& warp, const Step& step, LaneMask mask) {
  const LaneMask bits = compared<Source, compare>(warp, step);
  // c may be p: q is computed from the c of before.
  const LaneMask c = step.c == kNone ? 0 : warp.predicate(step.c);
  if (step.d != kNone) {
    warp.set_predicate(step.d, step.c == kNone ? bits : combined(step.immediate, bits, c), mask);
  }
  if (step.list[0] != kNone) {
    warp.set_predicate(step.list[0], step.c == kNone ? ~bits : combined(step.immediate, ~bits, c), mask);
  }
}

// p of the lower halves, q of the upper ones.
template <class H, auto compare>
void set_predicates_of_pairs(Warp& warp, const Step& step, LaneMask mask) {
  const LaneMask lower = compared<HalfOfPair<H, 0>, compare>(warp, step);
  const LaneMask upper = compared<HalfOfPair<H, 1>, compare>(warp, step);
  const LaneMask c = step.c == kNone ? kAllLanes : warp.predicate(step.c);
  const std::int64_t combination = step.c == kNone ? std::int64_t{kAnd} : step.immediate;
  if (step.d != kNone) warp.set_predicate(step.d, combined(combination, lower, c), mask);
  if (step.list[0] != kNone) warp.set_predicate(step.list[0], combined(combination, upper, c), mask);
}

// The body of `Shape` for the comparison of that name; null when there is none.
template <template <auto compare> class Shape>
Body of_integers(std::string_view name) {
  if (name == "eq") return Shape<eq>::body;
  if (name == "ne") return Shape<ne>::body;
  if (name == "lt" || name == "lo") return Shape<lt>::body;
  if (name == "le" || name == "ls") return Shape<le>::body;
  if (name == "gt" || name == "hi") return Shape<gt>::body;
  if (name == "ge" || name == "hs") return Shape<ge>::body;
  return nullptr;
}
template <template <auto compare> class Shape>
Body of_numbers(std::string_view name) {
  if (name == "ne") return Shape<ordered_ne>::body;
  if (name == "equ") return Shape<equ>::body;
  if (name == "neu") return Shape<ne>::body;
  if (name == "ltu") return Shape<ltu>::body;
  if (name == "leu") return Shape<leu>::body;
  if (name == "gtu") return Shape<gtu>::body;
  if (name == "geu") return Shape<geu>::body;
  if (name == "num") return Shape<num>::body;
  if (name == "nan") return Shape<nan>::body;
  return of_integers<Shape>(name);
}

template <class Source>
struct Setp {
  template <auto compare>
  struct Of {
    static constexpr Body body = set_predicates<Source, compare>;
  };
};
template <class H>
struct SetpOfPairs {
  template <auto compare>
  struct Of {
    static constexpr Body body = set_predicates_of_pairs<H, compare>;
  };
};

void note_combination(Match& match) {
  match.step().immediate = match.has(".or") ? kOr : match.has(".xor") ? kXor : kAnd;
}

// A combination needs its predicate, and the other way round.
bool is_complete(Match& match) {
  const bool combines = match.has(".and") || match.has(".or") || match.has(".xor");
  return combines == (match.step().c != kNone);
}

template <class T>
Body setp_of_integers(Match& match) {
  if (!is_complete(match)) return nullptr;
  note_combination(match);
  return of_integers<Setp<Plain<T>>::template Of>(match.choice(0));
}
template <class Source>
Body setp_of_numbers(Match& match) {
  if (!is_complete(match)) return nullptr;
  note_combination(match);
  return of_numbers<Setp<Source>::template Of>(match.choice(0));
}
Body setp_of_f32(Match& match) {
  return match.has(".ftz") ? setp_of_numbers<Flushed>(match) : setp_of_numbers<Plain<float>>(match);
}
template <class H>
Body setp_of_pairs(Match& match) {
  if (!is_complete(match)) return nullptr;
  note_combination(match);
  return of_numbers<SetpOfPairs<H>::template Of>(match.choice(0));
}

// ---- choosing

template <class T>
void choose(Warp& warp, const Step& step, LaneMask mask) {
  T* d = warp.lanes<T>(step.d);
  const T* a = warp.lanes<T>(step.a);
  const T* b = warp.lanes<T>(step.b);
  const LaneMask p = warp.predicate(step.c);
  each_lane(mask, [&](int l) { d[l] = (p & kLaneBit[l]) != 0 ? a[l] : b[l]; });
}

// a where c >= 0, else b.
template <class T>
constexpr auto choose_by_sign = [](T a, T b, s32 c) { return c >= 0 ? a : b; };
template <class T, bool ftz>
constexpr auto choose_by_float_sign = [](T a, T b, float c) { return (ftz ? flushed(c) : c) >= 0 ? a : b; };
template <class T>
Body slct_by_float(Match& match) {
  return match.has(".ftz") ? ternary<T, T, T, float, choose_by_float_sign<T, true>>
                           : ternary<T, T, T, float, choose_by_float_sign<T, false>>;
}

// ---- predicates

template <auto f>
void predicates_of_one(Warp& warp, const Step& step, LaneMask mask) {
  warp.set_predicate(step.d, f(warp.predicate(step.a)), mask);
}
template <auto f>
void predicates_of_two(Warp& warp, const Step& step, LaneMask mask) {
  warp.set_predicate(step.d, f(warp.predicate(step.a), warp.predicate(step.b)), mask);
}

constexpr std::string_view kSetp16 = "d:p|l:p?, a:r16, b:r16, !c:p?",
                           kSetp32 = "d:p|l:p?, a:r32, b:r32, !c:p?";
constexpr std::string_view kSetp64 = "d:p|l:p?, a:r64, b:r64, !c:p?";
constexpr std::string_view kSelp16 = "d:r16, a:r16, b:r16, c:p", kSelp32 = "d:r32, a:r32, b:r32, c:p";
constexpr std::string_view kSelp64 = "d:r64, a:r64, b:r64, c:p";

#define EQUALITIES "(.eq|.ne){.and|.or|.xor}"
#define ORDERS "(.eq|.ne|.lt|.le|.gt|.ge){.and|.or|.xor}"
#define UNSIGNED_ORDERS "(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs){.and|.or|.xor}"
#define NUMBER_ORDERS "(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan){.and|.or|.xor}"

constexpr Row kRows[] = {
    {"setp" EQUALITIES ".b16", kSetp16, setp_of_integers<u16>},
    {"setp" EQUALITIES ".b32", kSetp32, setp_of_integers<u32>},
    {"setp" EQUALITIES ".b64", kSetp64, setp_of_integers<u64>},
    {"setp" UNSIGNED_ORDERS ".u16", kSetp16, setp_of_integers<u16>},
    {"setp" UNSIGNED_ORDERS ".u32", kSetp32, setp_of_integers<u32>},
    {"setp" UNSIGNED_ORDERS ".u64", kSetp64, setp_of_integers<u64>},
    {"setp" ORDERS ".s16", kSetp16, setp_of_integers<s16>},
    {"setp" ORDERS ".s32", kSetp32, setp_of_integers<s32>},
    {"setp" ORDERS ".s64", kSetp64, setp_of_integers<s64>},
    {"setp" NUMBER_ORDERS "{.ftz}.f32", kSetp32, setp_of_f32},
    {"setp" NUMBER_ORDERS ".f64", kSetp64, setp_of_numbers<Plain<double>>},
    {"setp" NUMBER_ORDERS ".f16", kSetp16, setp_of_numbers<Half<F16>>},
    {"setp" NUMBER_ORDERS ".bf16", kSetp16, setp_of_numbers<Half<Bf16>>},
    {"setp" NUMBER_ORDERS ".f16x2", kSetp32, setp_of_pairs<F16>},
    {"setp" NUMBER_ORDERS ".bf16x2", kSetp32, setp_of_pairs<Bf16>},

    {"selp(.b16|.u16|.s16)", kSelp16, always<choose<u16>>},
    {"selp(.b32|.u32|.s32|.f32)", kSelp32, always<choose<u32>>},
    {"selp(.b64|.u64|.s64|.f64)", kSelp64, always<choose<u64>>},
    {"slct(.b16|.u16|.s16).s32", "d:r16, a:r16, b:r16, c:r32",
     always<ternary<u16, u16, u16, s32, choose_by_sign<u16>>>},
    {"slct(.b32|.u32|.s32|.f32).s32", "d:r32, a:r32, b:r32, c:r32",
     always<ternary<u32, u32, u32, s32, choose_by_sign<u32>>>},
    {"slct(.b64|.u64|.s64|.f64).s32", "d:r64, a:r64, b:r64, c:r32",
     always<ternary<u64, u64, u64, s32, choose_by_sign<u64>>>},
    {"slct{.ftz}(.b32|.u32|.s32|.f32).f32", "d:r32, a:r32, b:r32, c:r32", slct_by_float<u32>},
    {"slct{.ftz}(.b64|.u64|.s64|.f64).f32", "d:r64, a:r64, b:r64, c:r32", slct_by_float<u64>},

    {"mov.pred", "d:p, a:p", always<predicates_of_one<[](LaneMask a) { return a; }>>},
    {"not.pred", "d:p, a:p", always<predicates_of_one<[](LaneMask a) { return ~a; }>>},
    {"and.pred", "d:p, a:p, b:p", always<predicates_of_two<[](LaneMask a, LaneMask b) { return a & b; }>>},
    {"or.pred", "d:p, a:p, b:p", always<predicates_of_two<[](LaneMask a, LaneMask b) { return a | b; }>>},
    {"xor.pred", "d:p, a:p, b:p", always<predicates_of_two<[](LaneMask a, LaneMask b) { return a ^ b; }>>},
};

}  // namespace

std::span<const Row> comparison_rows() {
  return kRows;
}

}  // namespace flashback::emulator
