// A kernel whose sums depend on the order of its CTAs.
#pragma once

#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {

// Each CTA adds 1 / (1 + its number) to the same 16 floats. `delay` says in %i, from its number in %cta, how
// often it loops before; %delay is its own. `end` comes last.
inline std::string kernel_of_sums(const std::string& delay, const std::string& end = "") {
  return module_of(8, fmt::format(R"(
.reg .b32 %s, %t, %cta, %i, %delay;
.reg .f32 %f;
.reg .b64 %sum;
.reg .pred %p;
ld.param.u64 %sum, [p];
mov.u32 %s, dynamic;
mov.u32 %t, %tid.x;
mov.u32 %cta, %ctaid.x;
{}
SPIN:
add.u32 %i, %i, -1;
setp.gt.s32 %p, %i, 0;
@%p bra SPIN;
add.u32 %cta, %cta, 1;
cvt.rn.f32.u32 %f, %cta;
rcp.rn.f32 %f, %f;
shl.b32 %i, %t, 2;
add.u32 %i, %i, %s;
st.shared.f32 [%i], %f;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
setp.ne.u32 %p, %t, 0;
@%p bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%sum], [%s], 64;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
{}
)",
                                  delay, end));
}

}  // namespace flashback::emulator::testing
