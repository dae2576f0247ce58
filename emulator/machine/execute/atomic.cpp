// atom and red: each lane reads, changes and writes, in lane order, at once. A program with atomics on global
// memory runs on one host thread (Program::communicates), so plain accesses do.
#include <cstring>
#include <string_view>

#include "emulator/machine/execute/addresses.h"
#include "emulator/machine/execute/combine.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

template <MemorySpace space, class Width, class T, Combination operation>
void atomic(Warp& warp, const Step& step, LaneMask mask) {
  T* d = step.d == kNone ? nullptr : warp.lanes<T>(step.d);
  const T* b = warp.lanes<T>(step.b);
  const T* c = step.c == kNone ? nullptr : warp.lanes<T>(step.c);
  const auto one = [&](const Access& access, int l) {
    std::byte* at = access.base + access.offset[l];
    T old;
    std::memcpy(&old, at, sizeof old);
    const T next = combine<operation, T, space != MemorySpace::kShared>(old, b[l], c == nullptr ? T{} : c[l]);
    std::memcpy(at, &next, sizeof next);
    if (d != nullptr) d[l] = old;
  };
  if (space == MemorySpace::kGeneric) {
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
      one(resolve<space, Width>(warp, step, sizeof(T), rest & -rest, Use::kReadWrite),
          std::countr_zero(rest));
    }
    return;
  }
  const Access access = resolve<space, Width>(warp, step, sizeof(T), mask, Use::kReadWrite);
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) one(access, std::countr_zero(rest));
}

template <class T, Combination operation>
Body in_space(std::string_view space, int address_bytes) {
  const bool wide = address_bytes == 8;
  if (space.empty()) return wide ? atomic<MemorySpace::kGeneric, std::uint64_t, T, operation> : nullptr;
  if (space == "global") return wide ? atomic<MemorySpace::kGlobal, std::uint64_t, T, operation> : nullptr;
  return wide ? atomic<MemorySpace::kShared, std::uint64_t, T, operation>
              : atomic<MemorySpace::kShared, std::uint32_t, T, operation>;
}

// Integer types by what the operation needs: bits, sign, or neither.
template <Combination operation>
Body with_type(Match& match, std::string_view type, std::string_view space) {
  const int bytes = match.bytes('a');
  constexpr bool kBits = operation == Combination::kAnd || operation == Combination::kOr ||
                         operation == Combination::kXor || operation == Combination::kExchange ||
                         operation == Combination::kCompare;
  constexpr bool kWraps = operation == Combination::kIncrement || operation == Combination::kDecrement;
  if constexpr (kBits) {
    if (type == "b32") return in_space<std::uint32_t, operation>(space, bytes);
    if (type == "b64") return in_space<std::uint64_t, operation>(space, bytes);
    return nullptr;
  } else if constexpr (kWraps) {
    return type == "u32" ? in_space<std::uint32_t, operation>(space, bytes) : nullptr;
  } else {
    if (type == "u32") return in_space<std::uint32_t, operation>(space, bytes);
    if (type == "s32") return in_space<std::int32_t, operation>(space, bytes);
    if (type == "u64") return in_space<std::uint64_t, operation>(space, bytes);
    if (type == "s64") return in_space<std::int64_t, operation>(space, bytes);
    if constexpr (operation == Combination::kAdd) {
      if (type == "f32") return in_space<float, operation>(space, bytes);
      if (type == "f64") return in_space<double, operation>(space, bytes);
    }
    return nullptr;
  }
}

// Choices: order, scope, space, operation, type.
Body select(Match& match) {
  const std::string_view space = match.choice(2), operation = match.choice(3), type = match.choice(4);
  if (operation == "add") return with_type<Combination::kAdd>(match, type, space);
  if (operation == "min") return with_type<Combination::kMin>(match, type, space);
  if (operation == "max") return with_type<Combination::kMax>(match, type, space);
  if (operation == "and") return with_type<Combination::kAnd>(match, type, space);
  if (operation == "or") return with_type<Combination::kOr>(match, type, space);
  if (operation == "xor") return with_type<Combination::kXor>(match, type, space);
  if (operation == "exch") return with_type<Combination::kExchange>(match, type, space);
  if (operation == "inc") return with_type<Combination::kIncrement>(match, type, space);
  if (operation == "dec") return with_type<Combination::kDecrement>(match, type, space);
  return nullptr;
}

// Choices: order, scope, space, type.
Body select_compare(Match& match) {
  return with_type<Combination::kCompare>(match, match.choice(3), match.choice(2));
}

#define SCOPED_SPACE "{.cta|.cluster|.gpu|.sys}{.global|.shared|.shared::cta|.shared::cluster}"
#define TYPES32 "(.b32|.u32|.s32|.f32)"
#define TYPES64 "(.b64|.u64|.s64|.f64)"
#define ATOM "atom{.relaxed|.acquire|.release|.acq_rel}" SCOPED_SPACE
#define RED "red{.relaxed|.release}" SCOPED_SPACE

constexpr Row kRows[] = {
    {ATOM "(.add|.min|.max|.and|.or|.xor|.exch|.inc|.dec)" TYPES32, "d:r32, [a], b:r32", select},
    {ATOM "(.add|.min|.max|.and|.or|.xor|.exch)" TYPES64, "d:r64, [a], b:r64", select},
    {ATOM ".cas" TYPES32, "d:r32, [a], b:r32, c:r32", select_compare},
    {ATOM ".cas" TYPES64, "d:r64, [a], b:r64, c:r64", select_compare},
    {RED "(.add|.min|.max|.and|.or|.xor|.inc|.dec)" TYPES32, "[a], b:r32", select},
    {RED "(.add|.min|.max|.and|.or|.xor)" TYPES64, "[a], b:r64", select},
};

}  // namespace

std::span<const Row> atomic_rows() {
  return kRows;
}

}  // namespace flashback::emulator
