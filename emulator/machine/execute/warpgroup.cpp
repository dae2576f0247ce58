// wgmma.mma_async, fence, commit_group, wait_group: all four warps of a warpgroup execute them.
//
// The fence orders accesses of registers before the products behind it, which here never read a register
// before their issue. What is left is that the warps of a warpgroup wait for each other at it: a product of
// hardware begins when all four have come, and programs rely on that for what the four have written to shared
// memory (CUTLASS's wgmma_sm90 tutorial waits for its own cp.async only).
#include <algorithm>
#include <cstdlib>
#include <span>

#include "emulator/machine/cta.h"
#include "emulator/machine/execute/whole_warp.h"
#include "emulator/machine/units/footprint.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

// A whole warp, of a whole warpgroup.
bool whole_warpgroup(Warp& warp, const Step& step, LaneMask mask) {
  if (!whole_warp(warp, step)) return false;
  if (mask != kAllLanes) {
    warp.fault(step, fmt::format("its guard lets lanes {:#010x} execute it; all 32 must", mask));
  }
  const std::size_t warps = warp.cta().warps().size();
  if (static_cast<std::size_t>(warp.index()) / 4 * 4 + 4 > warps) {
    warp.fault(step, fmt::format("the CTA's {} warps end within the warpgroup; it must have four", warps));
  }
  return true;
}

template <bool a_in_registers>
void multiply(Warp& warp, const Step& step, LaneMask mask) {
  if (!whole_warpgroup(warp, step, mask)) return;
  const WarpProductShape shape = WarpProductShape::of(step);
  WarpProduct product;
  product.step = &step;
  product.b = uniform<std::uint64_t>(warp, step, step.b, "the descriptor of B");
  decode_warpgroup_descriptor(product.b);
  if (!a_in_registers) {
    product.a = uniform<std::uint64_t>(warp, step, step.a, "the descriptor of A");
    decode_warpgroup_descriptor(product.a);
  }
  const LaneMask accumulate = warp.predicate(step.list[shape.d_registers() + (a_in_registers ? 4 : 0)]);
  if (accumulate != 0 && accumulate != kAllLanes) {
    warp.fault(step, fmt::format("scale-d is true in lanes {:#010x}; all lanes must agree", accumulate));
  }
  product.accumulate = accumulate != 0;
  product.group = warp.products.groups;
  product.operation = announce(warp, step, kAllLanes, Operation::Kind::kWarpProduct);
  warp.cta().warpgroups[static_cast<std::size_t>(warp.index()) / 4].issued(warp.index() % 4, product);
  if (warp.index() % 4 == 0) warp.cta().work.count_matrix_instruction();
  warp.products.pending.push_back(product);
  while (!warp.products.pending.empty() && warp.cta().work.at_once()) complete_oldest_product(warp);
}

void fence(Warp& warp, const Step& step, LaneMask mask) {
  if (!whole_warpgroup(warp, step, mask)) return;
  const std::size_t number = static_cast<std::size_t>(warp.index()) / 4;
  WarpgroupOrder& warpgroup = warp.cta().warpgroups[number];
  const bool has_come = warp.waited().kind == Wait::Kind::kWarpgroup;
  const std::uint32_t before = has_come ? warp.waited().when : warpgroup.reached(warp.index() % 4);
  if (!warpgroup.passed(before)) {
    warp.wait_here({Wait::Kind::kWarpgroup, static_cast<std::uint32_t>(number), before});
  }
}

void commit(Warp& warp, const Step& step, LaneMask mask) {
  if (whole_warpgroup(warp, step, mask)) ++warp.products.groups;
}

// A wgmma-group is one of the warpgroup (ISA 9.7.15.7.2): it is complete when the parts of all four warps
// are. CUTLASS's pipelines let one warp give back the operands of all.
void wait(Warp& warp, const Step& step, LaneMask mask) {
  if (!whole_warpgroup(warp, step, mask)) return;
  const auto allowed = static_cast<std::uint32_t>(step.immediate);
  const std::uint32_t complete = warp.products.groups - std::min(allowed, warp.products.groups);
  const auto number = static_cast<std::size_t>(warp.index()) / 4;
  const std::span<Warp> warpgroup = std::span(warp.cta().warps()).subspan(4 * number, 4);
  for (const Warp& other : warpgroup) {
    if (other.products.groups >= complete) continue;
    warp.wait_here({Wait::Kind::kProducts, static_cast<std::uint32_t>(number), complete});
    return;
  }
  for (Warp& each : warpgroup) complete_product_groups(each, complete);
}

template <Body body>
Body always(Match&) {
  return body;
}

// Choices: shape, types. Behind the registers and scale-d the list has literals: scale-a, scale-b, whether A
// is transposed where it is in shared memory, whether B is. Of tf32 nothing is transposed.
template <bool a_in_registers>
Body select_multiply(Match& match) {
  WarpProductShape shape;
  shape.n = std::atoi(match.choice(0).data() + 4);  // m64n...
  const std::string_view types = match.choice(1);
  shape.type = types.ends_with(".tf32") ? Half::kTf32 : types.ends_with(".f16") ? Half::kF16 : Half::kBf16;
  shape.d_is_f16 = types.starts_with("f16");
  shape.a_in_registers = a_in_registers;
  const int literals = shape.d_registers() + (a_in_registers ? 4 : 0) + 1, count = shape.type == Half::kTf32
                                                                                       ? 2
                                                                                   : a_in_registers ? 3
                                                                                                    : 4;
  if (match.list_size() != literals + count) return nullptr;
  std::uint64_t values[4] = {};
  for (int i = 0; i < count; ++i) {
    const std::optional<std::uint64_t> literal = match.list_literal(literals + i);
    const std::uint64_t other = i < 2 ? 0xffffffff : 0;  // -1, or no transposition
    if (!literal || (*literal != 1 && *literal != other)) return nullptr;
    values[i] = *literal;
  }
  shape.negative = (values[0] == 1) != (values[1] == 1);
  shape.a_mn_major = !a_in_registers && values[2] == 1;
  shape.b_mn_major = count > 2 && values[count - 1] == 1;
  match.step().immediate = shape.packed();
  return multiply<a_in_registers>;
}

#define SHAPES                                                                                          \
  "(.m64n8k16|.m64n16k16|.m64n24k16|.m64n32k16|.m64n40k16|.m64n48k16|.m64n56k16|.m64n64k16|.m64n72k16|" \
  ".m64n80k16|.m64n88k16|.m64n96k16|.m64n104k16|.m64n112k16|.m64n120k16|.m64n128k16|.m64n136k16|"       \
  ".m64n144k16|.m64n152k16|.m64n160k16|.m64n168k16|.m64n176k16|.m64n184k16|.m64n192k16|.m64n200k16|"    \
  ".m64n208k16|.m64n216k16|.m64n224k16|.m64n232k16|.m64n240k16|.m64n248k16|.m64n256k16)"
#define SHAPES_TF32                                                                                      \
  "(.m64n8k8|.m64n16k8|.m64n24k8|.m64n32k8|.m64n40k8|.m64n48k8|.m64n56k8|.m64n64k8|.m64n72k8|.m64n80k8|" \
  ".m64n88k8|.m64n96k8|.m64n104k8|.m64n112k8|.m64n120k8|.m64n128k8|.m64n136k8|.m64n144k8|.m64n152k8|"    \
  ".m64n160k8|.m64n168k8|.m64n176k8|.m64n184k8|.m64n192k8|.m64n200k8|.m64n208k8|.m64n216k8|.m64n224k8|"  \
  ".m64n232k8|.m64n240k8|.m64n248k8|.m64n256k8)"
#define MULTIPLY "wgmma.mma_async.sync.aligned" SHAPES "(.f32.bf16.bf16|.f32.f16.f16|.f16.f16.f16)"

#define MULTIPLY_TF32 "wgmma.mma_async.sync.aligned" SHAPES_TF32 "(.f32.tf32.tf32)"

constexpr Row kRows[] = {
    {MULTIPLY, "+list:{r32}, a:r64, b:r64, !l:p, l:r32, l:r32, l:r32, l:r32", select_multiply<false>},
    {MULTIPLY, "+list:{r32}, list:{r32}x4, b:r64, !l:p, l:r32, l:r32, l:r32", select_multiply<true>},
    {MULTIPLY_TF32, "+list:{r32}, a:r64, b:r64, !l:p, l:r32, l:r32", select_multiply<false>},
    {MULTIPLY_TF32, "+list:{r32}, list:{r32}x4, b:r64, !l:p, l:r32, l:r32", select_multiply<true>},
    {"wgmma.fence.sync.aligned", "", always<fence>},
    {"wgmma.commit_group.sync.aligned", "", always<commit>},
    {"wgmma.wait_group.sync.aligned", "i:imm", always<wait>},
};

}  // namespace

std::span<const Row> warpgroup_rows() {
  return kRows;
}

}  // namespace flashback::emulator
