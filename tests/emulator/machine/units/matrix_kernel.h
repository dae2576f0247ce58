// What kernels that multiply with tcgen05.mma, for one CTA and for a pair, have in common.
#pragma once

namespace flashback::emulator::testing {

// A, 32 columns of 128 lanes at %words in global memory, into tensor memory from column 256 on.
inline constexpr const char* kStoreA = R"(
mov.u32 %i, 0;
STORE_A:
mul.wide.u32 %at, %i, 512;
add.s64 %at, %at, %words;
mul.wide.u32 %rd, %thread, 4;
add.s64 %at, %at, %rd;
ld.global.b32 %v, [%at];
add.u32 %w, %i, 256;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%w], {%v};
add.u32 %i, %i, 1;
setp.lt.u32 %more, %i, 32;
@%more bra STORE_A;
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
)";

// After a multiplication: the next of %steps, with both operands further on, adds to D.
inline constexpr const char* kNextStep = R"(
setp.eq.u32 %accumulate, 0, 0;
cvt.u64.u32 %adv, %aadv;
add.s64 %a, %a, %adv;
add.u32 %acol, %acol, %aadv;
cvt.u64.u32 %adv, %badv;
add.s64 %b, %b, %adv;
sub.u32 %steps, %steps, 1;
setp.ne.u32 %more, %steps, 0;
@%more bra STEP;
)";

// The warp's lanes of the first %n columns to %out in global memory.
inline constexpr const char* kReadColumns = R"(
tcgen05.fence::after_thread_sync;
mov.u32 %i, 0;
mul.wide.u32 %at, %thread, 4;
add.s64 %at, %at, %out;
READ:
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v}, [%i];
tcgen05.wait::ld.sync.aligned;
st.global.b32 [%at], %v;
add.s64 %at, %at, 512;
add.u32 %i, %i, 1;
setp.lt.u32 %more, %i, %n;
@%more bra READ;
)";

}  // namespace flashback::emulator::testing
