// mov, with packing and unpacking, address conversion and byte permutation.
#include <cstring>

#include "emulator/machine/address_space.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/execute/predicates.h"
#include "emulator/machine/execute/rows.h"

namespace flashback::emulator {
namespace {

template <class T>
void move(Warp& warp, const Step& step, LaneMask mask) {
  T* d = warp.lanes<T>(step.d);
  const T* a = warp.lanes<T>(step.a);
  if (mask == kAllLanes) {
    std::memmove(d, a, 32 * sizeof(T));
  } else {
    each_lane(mask, [&](int l) { d[l] = a[l]; });
  }
}

// Packed parts, the first one lowest.
template <class Whole, class Part>
void pack(Warp& warp, const Step& step, LaneMask mask) {
  constexpr int kParts = sizeof(Whole) / sizeof(Part);
  Whole* d = warp.lanes<Whole>(step.d);
  const Part* part[kParts];
  for (int i = 0; i < kParts; ++i) part[i] = warp.lanes<Part>(step.list[i]);
  each_lane(mask, [&](int l) {
    Whole whole = 0;
    for (int i = 0; i < kParts; ++i) whole |= Whole(Whole(part[i][l]) << (8 * sizeof(Part) * i));
    d[l] = whole;
  });
}

template <class Whole, class Part>
void unpack(Warp& warp, const Step& step, LaneMask mask) {
  const Whole* a = warp.lanes<Whole>(step.a);
  for (int i = 0; i < step.list_size; ++i) {
    if (step.list[i] == kNone) continue;
    Part* d = warp.lanes<Part>(step.list[i]);
    const int shift = int(8 * sizeof(Part)) * i;
    each_lane(mask, [&](int l) { d[l] = Part(a[l] >> shift); });
  }
}

// 128 bits as two halves, the low one first.
void pack_halves(Warp& warp, const Step& step, LaneMask mask) {
  u64(*d)[2] = warp.lanes<u64[2]>(step.d);
  for (int i = 0; i < 2; ++i) {
    const u64* half = warp.lanes<u64>(step.list[i]);
    each_lane(mask, [&](int l) { d[l][i] = half[l]; });
  }
}

void unpack_halves(Warp& warp, const Step& step, LaneMask mask) {
  const u64(*a)[2] = warp.lanes<u64[2]>(step.a);
  for (int i = 0; i < 2; ++i) {
    if (step.list[i] == kNone) continue;
    u64* half = warp.lanes<u64>(step.list[i]);
    each_lane(mask, [&](int l) { half[l] = a[l][i]; });
  }
}

// Generic addresses are those of the state space, but for shared memory, which lies in its window.
constexpr auto shared_to_generic = [](u64 a) { return a + kSharedWindow; };
constexpr auto generic_to_shared = [](u64 a) { return a - kSharedWindow; };

template <bool kOfCluster>
void is_shared(Warp& warp, const Step& step, LaneMask mask) {
  const u64* a = warp.lanes<u64>(step.a);
  const u32 rank = warp.cta().rank();
  warp.set_predicate(step.d, collect([&](int l) {
                       return in_shared_window(a[l]) && (kOfCluster || rank_of(u32(a[l])) == rank);
                     }),
                     mask);
}

// ---- prmt: the bytes of b:a are numbered 0 to 7, a's first

u32 byte_of(u64 bytes, u32 number) {
  return u32(bytes >> (8 * number) & 0xff);
}

// Each nibble of c names a byte; its top bit asks for the byte's sign in all of its bits.
constexpr auto permute = [](u32 a, u32 b, u32 c) {
  const u64 bytes = u64{b} << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 selector = c >> (4 * i);
    u32 byte = byte_of(bytes, selector & 7);
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    d |= byte << (8 * i);
  }
  return d;
};
// The modes compute the number of byte i from the two lowest bits of c.
template <auto number>
constexpr auto permute_by_mode = [](u32 a, u32 b, u32 c) {
  const u64 bytes = u64{b} << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; ++i) d |= byte_of(bytes, u32(number(int(c & 3), i))) << (8 * i);
  return d;
};
constexpr auto forward_4 = [](int c, int i) { return c + i; };
constexpr auto backward_4 = [](int c, int i) { return (c - i) & 7; };
constexpr auto replicate_8 = [](int c, int) { return c; };
constexpr auto edge_left = [](int c, int i) { return i > c ? i : c; };
constexpr auto edge_right = [](int c, int i) { return i < c ? i : c; };
constexpr auto replicate_16 = [](int c, int i) { return (c & 1) * 2 + (i & 1); };

constexpr std::string_view kPermuted = "d:r32, a:r32, b:r32, c:r32";

constexpr Row kRows[] = {
    {"mov(.b16|.u16|.s16|.f16|.bf16)", "d:r16, a:r16", always<move<u16>>},
    {"mov(.b32|.u32|.s32|.f32|.f16x2|.bf16x2)", "d:r32, a:r32", always<move<u32>>},
    {"mov(.b64|.u64|.s64|.f64)", "d:r64, a:r64", always<move<u64>>},
    {"mov.b32", "d:r32, list:{r16}x2", always<pack<u32, u16>>},
    {"mov.b64", "d:r64, list:{r32}x2", always<pack<u64, u32>>},
    {"mov.b64", "d:r64, list:{r16}x4", always<pack<u64, u16>>},
    {"mov.b128", "d:r128, list:{r64}x2", always<pack_halves>},
    {"mov.b128", "list:{r64}x2, a:r128", always<unpack_halves>},
    {"mov.b32", "list:{r16}x2, a:r32", always<unpack<u32, u16>>},
    {"mov.b64", "list:{r32}x2, a:r64", always<unpack<u64, u32>>},
    {"mov.b64", "list:{r16}x4, a:r64", always<unpack<u64, u16>>},

    {"cvta{.to}(.global|.local|.param|.const).u64", "d:r64, a:r64", always<move<u64>>},
    {"cvta(.shared|.shared::cta|.shared::cluster).u64", "d:r64, a:r64", one<u64, shared_to_generic>},
    {"cvta.to(.shared|.shared::cta|.shared::cluster).u64", "d:r64, a:r64", one<u64, generic_to_shared>},
    {"isspacep(.shared|.shared::cta)", "d:p, a:r64", always<is_shared<false>>},
    {"isspacep.shared::cluster", "d:p, a:r64", always<is_shared<true>>},

    {"prmt.b32", kPermuted, three<u32, permute>},
    {"prmt.b32.f4e", kPermuted, three<u32, permute_by_mode<forward_4>>},
    {"prmt.b32.b4e", kPermuted, three<u32, permute_by_mode<backward_4>>},
    {"prmt.b32.rc8", kPermuted, three<u32, permute_by_mode<replicate_8>>},
    {"prmt.b32.ecl", kPermuted, three<u32, permute_by_mode<edge_left>>},
    {"prmt.b32.ecr", kPermuted, three<u32, permute_by_mode<edge_right>>},
    {"prmt.b32.rc16", kPermuted, three<u32, permute_by_mode<replicate_16>>},
};

}  // namespace

std::span<const Row> move_rows() {
  return kRows;
}

}  // namespace flashback::emulator
