// ld, st, prefetch.
#include <cstring>
#include <string_view>

#include "emulator/machine/execute/addresses.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/machine/units/tensor_map.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

struct Registers {  // the data of a scalar or vector access
  const Slot* slots;
  int count;
  explicit Registers(const Step& step)
      : slots(step.list_size == 0 ? &step.d : step.list), count(step.list_size == 0 ? 1 : step.list_size) {}
};

template <class M>
M read(const std::byte* from) {
  M value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// M: type in memory, whose sign decides how it extends. R: unsigned type of the register.
template <MemorySpace space, class Width, class M, class R>
void load(Warp& warp, const Step& step, LaneMask mask) {
  if constexpr (space == MemorySpace::kGeneric) {
    if (is_mixed(warp, step, mask)) {
      for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        load<space, Width, M, R>(warp, step, rest & -rest);
      }
      return;
    }
  }
  const Registers to(step);
  const auto bytes = static_cast<std::uint32_t>(to.count * sizeof(M));
  const Access access = resolve<space, Width>(warp, step, bytes, mask, Use::kRead);
  for (int j = 0; j < to.count; ++j) {
    if (to.slots[j] == kNone) continue;
    R* d = warp.lanes<R>(to.slots[j]);
    const std::byte* from = access.base + j * sizeof(M);
    switch (access.pattern) {
      case Pattern::kUniform: {
        const R value = static_cast<R>(read<M>(from));
        for (int l = 0; l < 32; ++l) d[l] = value;
        break;
      }
      case Pattern::kConsecutive:
        if (to.count == 1) {
          for (int l = 0; l < 32; ++l) d[l] = static_cast<R>(read<M>(from + l * sizeof(M)));
        } else {
          for (int l = 0; l < 32; ++l)
            d[l] = static_cast<R>(read<M>(from + static_cast<std::uint32_t>(l) * bytes));
        }
        break;
      case Pattern::kScattered:
        for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
          const int l = std::countr_zero(rest);
          d[l] = static_cast<R>(read<M>(from + access.offset[l]));
        }
        break;
    }
  }
}

template <MemorySpace space, class Width, class M, class R>
void store(Warp& warp, const Step& step, LaneMask mask) {
  if constexpr (space == MemorySpace::kGeneric) {
    if (is_mixed(warp, step, mask)) {
      for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        store<space, Width, M, R>(warp, step, rest & -rest);
      }
      return;
    }
  }
  const bool is_scalar = step.list_size == 0;
  const Slot* slots = is_scalar ? &step.b : step.list;
  const int count = is_scalar ? 1 : step.list_size;
  const auto bytes = static_cast<std::uint32_t>(count * sizeof(M));
  const Access access = resolve<space, Width>(warp, step, bytes, mask, Use::kWrite);
  if (access.pattern == Pattern::kConsecutive && count == 1) {
    const R* from = warp.lanes<R>(slots[0]);
    for (int l = 0; l < 32; ++l) {
      const M value = static_cast<M>(from[l]);
      std::memcpy(access.base + l * sizeof(M), &value, sizeof value);
    }
    return;
  }
  // Lane by lane: where two lanes write to one place, the higher one is seen.
  const R* from[8];
  for (int j = 0; j < count; ++j) from[j] = warp.lanes<R>(slots[j]);
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    std::byte* to = access.base + access.offset[l];
    for (int j = 0; j < count; ++j) {
      const M value = static_cast<M>(from[j][l]);
      std::memcpy(to + j * sizeof(M), &value, sizeof value);
    }
  }
}

template <template <MemorySpace, class, class, class> class Op, class M, class R>
Body in_space(std::string_view space, int address_bytes) {
  const bool wide = address_bytes == 8;
  if (space.empty()) return wide ? Op<MemorySpace::kGeneric, std::uint64_t, M, R>::body : nullptr;
  if (space == "global" || space == "const") {
    return wide ? Op<MemorySpace::kGlobal, std::uint64_t, M, R>::body : nullptr;
  }
  if (space == "local") return wide ? Op<MemorySpace::kLocal, std::uint64_t, M, R>::body : nullptr;
  if (space == "param") return wide ? Op<MemorySpace::kParameter, std::uint64_t, M, R>::body : nullptr;
  // .shared, .shared::cta, .shared::cluster: check_shared knows them apart.
  return wide ? Op<MemorySpace::kShared, std::uint64_t, M, R>::body
              : Op<MemorySpace::kShared, std::uint32_t, M, R>::body;
}

template <MemorySpace space, class Width, class M, class R>
struct Load {
  static constexpr Body body = load<space, Width, M, R>;
};
template <MemorySpace space, class Width, class M, class R>
struct Store {
  static constexpr Body body = store<space, Width, M, R>;
};

template <template <MemorySpace, class, class, class> class Op, class M>
Body with_register(std::string_view space, int address_bytes, int register_bytes) {
  switch (register_bytes) {
    case 2:
      if constexpr (sizeof(M) <= 2) return in_space<Op, M, std::uint16_t>(space, address_bytes);
      return nullptr;
    case 4:
      if constexpr (sizeof(M) <= 4) return in_space<Op, M, std::uint32_t>(space, address_bytes);
      return nullptr;
    case 8:
      return in_space<Op, M, std::uint64_t>(space, address_bytes);
    default:
      return nullptr;
  }
}

template <template <MemorySpace, class, class, class> class Op>
Body with_type(std::string_view type, std::string_view space, int address_bytes, int register_bytes) {
  const auto pick = [&]<class M>(M) { return with_register<Op, M>(space, address_bytes, register_bytes); };
  if (type == "b8" || type == "u8") return pick(std::uint8_t{});
  if (type == "s8") return pick(std::int8_t{});
  if (type == "b16" || type == "u16") return pick(std::uint16_t{});
  if (type == "s16") return pick(std::int16_t{});
  if (type == "b32" || type == "u32" || type == "f32") return pick(std::uint32_t{});
  if (type == "s32") return pick(std::int32_t{});
  return pick(std::uint64_t{});
}

// Elements of a vector access by its piece; 1 without one. 0 when registers and piece disagree.
int vector_size(Match& match, std::string_view piece) {
  const int size = piece.empty() ? 1 : piece[1] - '0';
  return match.list_size() == (size == 1 ? 0 : size) ? size : 0;
}

int size_of(std::string_view type) {
  return type.ends_with("64") ? 8 : type.ends_with("32") ? 4 : type.ends_with("16") ? 2 : 1;
}

// 16 bytes a lane, 32 where sm_100 has 256-bit accesses.
bool size_is_legal(std::string_view space, int bytes) {
  return bytes <= 16 || (bytes == 32 && space == "global");
}

template <int kSpace, int kVector, int kType>
Body select_load(Match& match) {
  const std::string_view space = match.choice(kSpace), type = match.choice(kType);
  const int vector = vector_size(match, match.choice(kVector));
  if (vector == 0 || !size_is_legal(space, vector * size_of(type))) return nullptr;
  return with_type<Load>(type, space, match.bytes('a'), match.bytes(vector == 1 ? 'd' : 'l'));
}

template <int kSpace, int kVector, int kType>
Body select_store(Match& match) {
  const std::string_view space = match.choice(kSpace), type = match.choice(kType);
  const int vector = vector_size(match, match.choice(kVector));
  if (vector == 0 || !size_is_legal(space, vector * size_of(type))) return nullptr;
  // Parameters of the launch are not written, only those of a call.
  return with_type<Store>(type, space == "param" ? "local" : space, match.bytes('a'),
                          match.bytes(vector == 1 ? 'b' : 'l'));
}

struct Bits128 {
  std::uint64_t low, high;
};

template <template <MemorySpace, class, class, class> class Op>
Body select_128(Match& match) {
  return in_space<Op, Bits128, Bits128>(match.choice(0), match.bytes('a'));
}

Body select_nothing(Match&) {
  return [](Warp&, const Step&, LaneMask) {};
}

void prefetch_map(Warp& warp, const Step& step, LaneMask mask) {
  const std::uint64_t* address = warp.lanes<std::uint64_t>(step.a);
  each_lane(mask, [&](int l) {
    const std::uint64_t at = address[l] + static_cast<std::uint64_t>(step.immediate);
    if (at % 64 != 0) warp.fault(step, "the address of a tensor map must be a multiple of 64");
  });
}

void create_policy(Warp& warp, const Step& step, LaneMask mask) {
  std::uint64_t* d = warp.lanes<std::uint64_t>(step.d);
  each_lane(mask, [&](int l) { d[l] = 0; });  // policies change speed only
}

#define SPACES "{.global|.shared|.shared::cta|.shared::cluster|.local|.param|.const}"
#define L1 "{.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate}"
#define L2 "{.L2::evict_normal|.L2::evict_first|.L2::evict_last}{.L2::cache_hint}"
#define SIZE "{.L2::64B|.L2::128B|.L2::256B}"
#define VECTOR "{.v2|.v4|.v8}"
#define TYPES "(.b8|.u8|.s8|.b16|.u16|.s16|.b32|.u32|.s32|.f32|.b64|.u64|.s64|.f64)"
#define SCOPE "(.cta|.cluster|.gpu|.sys)"

constexpr Row kRows[] = {
    {"ld{.weak}" SPACES "{.ca|.cg|.cs|.lu|.cv}{.nc}" L1 L2 SIZE VECTOR TYPES, "d:r, [a], c:r64?",
     select_load<0, 5, 6>},
    {"ld{.weak}" SPACES "{.ca|.cg|.cs|.lu|.cv}{.nc}" L1 L2 SIZE VECTOR TYPES, "list:{r}, [a], c:r64?",
     select_load<0, 5, 6>},
    {"ld{.weak}" SPACES ".b128", "d:r128, [a]", select_128<Load>},
    {"st{.weak}" SPACES ".b128", "[a], b:r128", select_128<Store>},
    {"ld.volatile" SPACES VECTOR TYPES, "d:r, [a]", select_load<0, 1, 2>},
    {"ld.volatile" SPACES VECTOR TYPES, "list:{r}, [a]", select_load<0, 1, 2>},
    {"ld(.relaxed|.acquire)" SCOPE SPACES L1 L2 SIZE VECTOR TYPES, "d:r, [a], c:r64?", select_load<2, 6, 7>},
    {"ld(.relaxed|.acquire)" SCOPE SPACES L1 L2 SIZE VECTOR TYPES, "list:{r}, [a], c:r64?",
     select_load<2, 6, 7>},
    {"st{.weak}" SPACES "{.wb|.cg|.cs|.wt}" L1 L2 VECTOR TYPES, "[a], b:r, c:r64?", select_store<0, 4, 5>},
    {"st{.weak}" SPACES "{.wb|.cg|.cs|.wt}" L1 L2 VECTOR TYPES, "[a], list:{r}, c:r64?",
     select_store<0, 4, 5>},
    {"st.volatile" SPACES VECTOR TYPES, "[a], b:r", select_store<0, 1, 2>},
    {"st.volatile" SPACES VECTOR TYPES, "[a], list:{r}", select_store<0, 1, 2>},
    {"st(.relaxed|.release)" SCOPE SPACES L1 L2 VECTOR TYPES, "[a], b:r, c:r64?", select_store<2, 5, 6>},
    {"st(.relaxed|.release)" SCOPE SPACES L1 L2 VECTOR TYPES, "[a], list:{r}, c:r64?", select_store<2, 5, 6>},
    {"prefetch{.global|.local}(.L1|.L2|.L2::evict_last|.L2::evict_normal)", "[a:r64]", select_nothing},
    {"prefetch{.param|.const}.tensormap", "[a:r64]", [](Match&) -> Body { return prefetch_map; }},
    {"createpolicy.fractional(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged)"
     "{.L2::evict_first|.L2::evict_unchanged}.b64",
     "d:r64, a:r32?", [](Match&) -> Body { return create_policy; }},
};

}  // namespace

std::span<const Row> memory_rows() {
  return kRows;
}

}  // namespace flashback::emulator
