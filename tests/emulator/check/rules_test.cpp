// Each rule on a text that breaks it and on its twin that does not: the lines that end in `//+` belong to the
// twin only, those that end in `//-` to the broken text only.
#include <gtest/gtest.h>

#include <sstream>

#include "emulator/check/checker.h"
#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::checking {
namespace {

using testing::module_of;
using testing::PtxBench;

struct Rule {
  const char* name;
  const char* rule;      // of the finding
  const char* sentence;  // a part of it
  std::uint32_t threads;
  const char* text;
  bool strict = false;
  std::uint32_t ctas = 1;
  bool fixed_sums = false;
  std::uint32_t cluster = 1;
  Arch arch = Arch::kSm100;
};

// %g: 4096 bytes of global memory; %s: shared memory; %t: the thread; %w: its warp; %l: its lane.
// %first: thread 0; %w0, %w1: warps 0 and 1. Of a cluster of two: %rank, %rank0 and %peer, the other's rank.
constexpr const char* kBegin = R"(
.reg .b64 %g, %q<8>;
.reg .b32 %s, %t, %w, %l, %c, %rank, %peer, %r<8>;
.reg .f32 %f<8>;
.reg .pred %p, %first, %w0, %w1, %l0, %rank0;
ld.param.u64 %g, [p];
mov.u32 %s, dynamic;
mov.u32 %t, %tid.x;
mov.u32 %l, %laneid;
mov.u32 %c, %ctaid.x;
mov.u32 %rank, %cluster_ctarank;
xor.b32 %peer, %rank, 1;
setp.eq.u32 %rank0, %rank, 0;
shr.u32 %w, %t, 5;
setp.eq.u32 %first, %t, 0;
setp.eq.u32 %l0, %l, 0;
setp.eq.u32 %w0, %w, 0;
setp.eq.u32 %w1, %w, 1;
shl.b32 %r0, %t, 2;
add.u32 %r0, %r0, %s;
)";

std::string text_of(const Rule& rule, bool twin) {
  std::istringstream lines(rule.text);
  std::string text = kBegin, line;
  while (std::getline(lines, line)) {
    const bool only_twin = line.ends_with("//+"), only_broken = line.ends_with("//-");
    if ((only_twin && !twin) || (only_broken && twin)) continue;
    text += line + "\n";
  }
  std::string module = module_of(8, text, ".maxntid 512");
  if (rule.arch == Arch::kSm90) module.replace(module.find("sm_100a"), 7, "sm_90a");
  return module;
}

std::vector<Finding> check(const Rule& rule, bool twin, Completion completion) {
  Checker checker(rule.strict, rule.fixed_sums);
  MachineOptions options;
  options.arch = rule.arch;
  options.observer = &checker;
  options.schedule.completion = completion;
  PtxBench bench(options);
  const Address memory = bench.upload(std::vector<std::byte>(4096));
  const Status status = bench.run(text_of(rule, twin), memory, {rule.threads, 1, 1}, {rule.ctas, 1, 1}, 32768,
                                  {rule.cluster, 1, 1});
  if (rule.rule != std::string("deadlock")) {
    EXPECT_TRUE(status.ok()) << status.sentence();
  }
  return checker.findings();
}

class Rules : public ::testing::TestWithParam<Rule> {};

TEST_P(Rules, FlagTheBrokenTextAndNotItsTwin) {
  const Rule& rule = GetParam();
  for (const Completion completion : {Completion::kEager, Completion::kLazy}) {
    const std::vector<Finding> found = check(rule, false, completion);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].rule, rule.rule);
    EXPECT_NE(found[0].sentence.find(rule.sentence), std::string::npos) << found[0].sentence;
    EXPECT_EQ(found[0].severity, rule.strict ? Severity::kAdvice : Severity::kError);
    for (const Finding& finding : check(rule, true, completion)) {
      ADD_FAILURE() << "in the twin: " << finding.rule << ": " << finding.sentence;
    }
  }
}

#define TENSOR_BEGIN                                                       \
  "@!%w0 bra ALLOCATED;\n"                                                 \
  "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+16], 64;\n" \
  "ALLOCATED:\n"                                                           \
  "@%first mbarrier.init.shared::cta.b64 [%s], 1;\n"                       \
  "tcgen05.fence::before_thread_sync;\n"                                   \
  "bar.sync 0;\n"                                                          \
  "tcgen05.fence::after_thread_sync;\n"                                    \
  "ld.shared.u32 %r1, [%s+16];\n"
#define TENSOR_END                                           \
  "tcgen05.fence::before_thread_sync;\n"                     \
  "bar.sync 0;\n"                                            \
  "tcgen05.fence::after_thread_sync;\n"                      \
  "@!%w0 bra END;\n"                                         \
  "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;\n" \
  "END:\n"
// Operands of 64 x 16 and 8 x 16 elements at 4096, whose two halves along K are the same kilobyte, stored by
// 64 threads; %q1 is their descriptor, %r2 the instruction's. M = 64, N = 8.
#define OPERANDS             \
  "add.u32 %r3, %s, 4096;\n" \
  "shl.b32 %r4, %t, 4;\n"    \
  "add.u32 %r4, %r4, %r3;\n" \
  "mov.b32 %r5, 0;\n"        \
  "st.shared.v4.b32 [%r4], {%r5, %r5, %r5, %r5};\n"
#define DESCRIPTOR                         \
  "cvt.u64.u32 %q1, %r3;\n"                \
  "shr.u64 %q1, %q1, 4;\n"                 \
  "or.b64 %q1, %q1, 0x0000400800000000;\n" \
  "mov.b32 %r2, 0x04020490;\n"             \
  "setp.ne.u32 %p, 0, 0;\n"
// The same for wgmma: A of 64 x 16 elements, whose first 8 rows are B as well.
#define WARPGROUP_BEGIN                    \
  OPERANDS                                 \
  "fence.proxy.async.shared::cta;\n"       \
  "bar.sync 0;\n"                          \
  "cvt.u64.u32 %q1, %r3;\n"                \
  "shr.u64 %q1, %q1, 4;\n"                 \
  "or.b64 %q1, %q1, 0x0000001000080000;\n" \
  "setp.ne.u32 %p, 0, 0;\n"                \
  "wgmma.fence.sync.aligned;\n"
#define WAIT(parity) "mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], " #parity ";"

// A pair of CTAs: mbarriers at 0 and 8; the words at 256 and 512 written and known to all; %r6 is the peer's
// shared memory.
#define PAIR_BEGIN                                     \
  "@%first mbarrier.init.shared::cta.b64 [%s], 1;\n"   \
  "@%first mbarrier.init.shared::cta.b64 [%s+8], 1;\n" \
  "st.shared.u32 [%r0+256], 1;\n"                      \
  "st.shared.u32 [%r0+512], 2;\n"                      \
  "fence.proxy.async;\n"                               \
  "fence.mbarrier_init.release.cluster;\n"             \
  "mapa.shared::cluster.u32 %r6, %s, %peer;\n"         \
  "add.u32 %r5, %s, 256;\n"                            \
  "barrier.cluster.arrive.release.aligned;\n"          \
  "barrier.cluster.wait.acquire.aligned;\n"            \
  "@!%rank0 bra PEER;\n"
#define PAIR_END                      \
  "END:\n"                            \
  "bar.warp.sync -1;\n"               \
  "barrier.cluster.arrive.release;\n" \
  "barrier.cluster.wait.acquire;\n"
// Rank 0's 128 bytes at 256 into the peer's at 512, told by the peer's first mbarrier.
#define SEND                                                                                  \
  "@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6+512]," \
  " [%r5], 128, [%r6];\n"
#define EXPECT "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 128;\n"
#define ARRIVE_AT_PEER(scope, offset) \
  "@%l0 mbarrier.arrive.release." #scope ".shared::cluster.b64 _, [%r6+" #offset "];"
#define WAIT_IN(scope, offset) \
  "mbarrier.try_wait.parity.acquire." #scope ".shared::cta.b64 %p, [%s+" #offset "], 0;"

constexpr Rule kRules[] = {
    {"WarpsOnSharedMemory", "race", "nothing orders the two", 64, R"(
@%w0 st.shared.u32 [%r0], 1;
bar.sync 0; //+
@%w1 ld.shared.u32 %r1, [%r0-128];
bar.sync 0; //-
)"},
    {"LanesOfAWarpThatStaysTogether", "race", "bar.warp.sync", 32, R"(
st.shared.u32 [%r0], 1;
bar.warp.sync -1; //+
xor.b32 %r1, %r0, 4;
ld.shared.u32 %r2, [%r1];
)"},
    {"AnArrivalOfOneLaneForItsWarp", "race", "(lanes 1 to 31)", 64, R"(
@%first mbarrier.init.shared::cta.b64 [%s+512], 1;
bar.sync 0;
@%w1 bra SECOND;
st.shared.u32 [%r0], 1;
bar.warp.sync -1; //+
@%l0 mbarrier.arrive.shared::cta.b64 _, [%s+512];
bra.uni END;
SECOND:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s+512], 0;
ld.shared.u32 %r2, [%r0-128];
END:
)"},
    {"CtasOnGlobalMemory", "race", "CTA number 0", 32, R"(
cvt.u64.u32 %q1, %t;
shl.b64 %q1, %q1, 2;
cvt.u64.u32 %q2, %c; //+
shl.b64 %q2, %q2, 7; //+
add.u64 %q1, %q1, %q2; //+
add.u64 %q1, %q1, %g;
st.global.u32 [%q1], %t;
)",
     false, 2},
    {"ReductionsAgainstAStore", "race", "nothing orders the two", 64, R"(
@%w0 red.global.add.u32 [%g], 1;
@%w1 red.global.add.u32 [%g], 1; //+
setp.eq.u32 %p, %t, 32; //-
@%p st.global.u32 [%g], 1; //-
)"},
    {"AFlagThatReleasesNothing", "race", "nothing orders the two", 64, R"(
@%w1 bra READ;
st.shared.u32 [%r0], 1;
bar.warp.sync -1;
@%l0 st.release.cta.shared.u32 [%s+512], 1; //+
@%l0 st.relaxed.cta.shared.u32 [%s+512], 1; //-
bra.uni END;
READ:
ld.acquire.cta.shared.u32 %r1, [%s+512];
ld.shared.u32 %r2, [%r0-128];
END:
)"},
    {"SumsInNoOrder", "sum-order", "both add floats", 32, R"(
@!%l0 bra END;
setp.eq.u32 %p, %c, 0;
@%p bra ADD; //+
WAIT: //+
ld.acquire.gpu.global.u32 %r1, [%g+256]; //+
setp.eq.u32 %p, %r1, 0; //+
@%p bra WAIT; //+
ADD:
red.global.add.f32 [%g], 0f3F800000;
red.release.gpu.global.add.u32 [%g+256], 1; //+
END:
)",
     false, 2, true},
    {"BulkSumsInTurnWithoutProxyFence", "proxy", "fence.proxy.async", 32, R"(
@!%l0 bra END;
setp.eq.u32 %p, %c, 0;
st.shared.v4.f32 [%s], {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};
fence.proxy.async.shared::cta;
@%p bra ADD;
WAIT:
ld.acquire.gpu.global.u32 %r1, [%g+256];
setp.eq.u32 %p, %r1, 0;
@%p bra WAIT;
fence.proxy.async.global; //+
ADD:
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%g], [%s], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
red.release.gpu.global.add.u32 [%g+256], 1;
END:
)",
     false, 2, true},
    {"AFlagOfAnotherCtaWithoutFence", "race", "CTA number 0", 32, R"(
setp.eq.u32 %p, %c, 1;
@%p bra READ;
@%l0 st.global.u32 [%g+256], 1;
@%l0 fence.acq_rel.gpu; //+
@%l0 red.relaxed.gpu.global.add.u32 [%g], 1;
bra.uni END;
READ:
ld.relaxed.gpu.global.u32 %r1, [%g];
fence.acq_rel.gpu;
ld.global.u32 %r2, [%g+256];
END:
)",
     false, 2},
    {"ReadingBeforeABulkLoadIsOver", "race", "mbarrier phase", 32, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
bar.warp.sync -1;
st.shared.u32 [%r0+256], 0;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@!%first bra LOADED;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 128;
add.u32 %r1, %s, 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%g], 128, [%s];
LOADED:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0; //+
ld.shared.u32 %r2, [%r0+256];
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0; //-
)"},
    {"AStoreThatTheAsynchronousProxyDoesNotSee", "proxy", "fence.proxy.async", 32, R"(
st.shared.u32 [%r0], 1;
fence.proxy.async.shared::cta; //+
bar.warp.sync -1;
@!%first bra END;
cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:
)"},
    {"OverwritingTheSourceOfABulkStore", "race", "wait_group.read", 32, R"(
st.shared.u32 [%r0], 1;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@!%first bra STORED;
cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0; //+
STORED:
bar.warp.sync -1;
st.shared.u32 [%r0], 2;
@%first cp.async.bulk.wait_group 0;
)"},
    // Lanes that store the same bytes in one instruction are let pass.
    {"TwoBulkStoresToOnePlace", "race", "nothing orders the two", 32, R"(
st.shared.u32 [%r0], 1;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
setp.lt.u32 %p, %l, 2;
@%p cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], 128;
@%l0 cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], 128; //-
@%p cp.async.bulk.commit_group;
@%p cp.async.bulk.wait_group 0;
)"},
    {"ReadingBeforeACopyIsOver", "race", "cp.async.wait_group", 32, R"(
st.shared.u32 [%r0], 0;
cp.async.ca.shared.global [%r0], [%g], 4;
cp.async.commit_group;
cp.async.wait_group 0; //+
ld.shared.u32 %r1, [%r0];
cp.async.wait_group 0; //-
)"},
    {"ReadingACopyThatNobodyToldOf", "race", "a cp.async of warp 0 writes", 64, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 32;
@%first mbarrier.init.shared::cta.b64 [%s+8], 32;
st.shared.u32 [%r0+512], 0;
st.shared.u32 [%r0+1024], 0;
bar.sync 0;
@%w1 bra READ;
cp.async.ca.shared.global [%r0+512], [%g], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s];
cp.async.ca.shared.global [%r0+1024], [%g], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s+8];
bra.uni END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
ld.shared.u32 %r1, [%r0+384]; //+
ld.shared.u32 %r1, [%r0+896]; //-
END:
)"},
    {"AnArrivalForCopiesOfOtherLanes", "race", "a cp.async of warp 0 writes", 64, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 32; //+
@%first mbarrier.init.shared::cta.b64 [%s], 1; //-
st.shared.u32 [%r0+512], 0;
bar.sync 0;
@%w1 bra READ;
cp.async.ca.shared.global [%r0+512], [%g], 4;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s]; //+
@%l0 cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%s]; //-
bra.uni END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
ld.shared.u32 %r1, [%r0+384];
END:
)"},
    // Warp 1 overwrites the rows of warp 0.
    {"OverwritingTheOperandOfAnotherWarpsProduct", "race", "a wgmma.mma_async of warp", 128,
     WARPGROUP_BEGIN R"(
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %q1, %q1, %p, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0; //+
@%w1 st.shared.v4.b32 [%r4-512], {%r5, %r5, %r5, %r5};
wgmma.wait_group.sync.aligned 0; //-
)",
     false, 1, false, 1, Arch::kSm90},
    {"AProductOverAnAccumulatorWithoutAFence", "wgmma", "accumulator", 128, WARPGROUP_BEGIN R"(
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %q1, %q1, %p, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.f32 %f0, %f0, %f1;
wgmma.fence.sync.aligned; //+
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %q1, %q1, %p, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
)",
     false, 1, false, 1, Arch::kSm90},
    {"ReadingWhatNobodyWrote", "uninitialised", "nothing has been written", 32, R"(
st.shared.u32 [%r0], 1; //+
ld.shared.u32 %r1, [%r0];
)"},
    {"TensorMemoryThatNobodyWrote", "uninitialised", "tensor memory", 32, TENSOR_BEGIN R"(
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t}; //+
tcgen05.wait::st.sync.aligned; //+
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
tcgen05.wait::ld.sync.aligned;
)" TENSOR_END},
    {"ALoadBeforeTheStoreIsOver", "tensor-race", "tcgen05.wait::st would", 32, TENSOR_BEGIN R"(
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned; //+
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
tcgen05.wait::ld.sync.aligned;
tcgen05.wait::st.sync.aligned; //-
)" TENSOR_END},
    {"AStoreOverALoadUnderWay", "tensor-race", "tcgen05.wait::ld would", 32, TENSOR_BEGIN R"(
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
tcgen05.wait::ld.sync.aligned; //+
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.wait::ld.sync.aligned; //-
)" TENSOR_END},
    // The use of a register is the end of its load, without a wait.
    {"AStoreOverALoadWhoseRegisterIsNotUsed", "tensor-race", "tcgen05.wait::ld would", 32, TENSOR_BEGIN R"(
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
add.u32 %r3, %r2, 1; //+
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.wait::ld.sync.aligned;
)" TENSOR_END},
    {"WarpsOfOneQuarter", "tensor-race", "nothing orders the two", 160, TENSOR_BEGIN R"(
@!%w0 bra READ;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
tcgen05.wait::ld.sync.aligned;
READ:
bar.sync 1, 160; //+
setp.eq.u32 %p, %w, 4;
@!%p bra WRITTEN;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
WRITTEN:
)" TENSOR_END},
    {"FreeingWhatOthersRead", "tensor-race", "tcgen05.dealloc", 160, TENSOR_BEGIN R"(
setp.eq.u32 %p, %w, 4;
@!%p bra READ;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
READ:
bar.sync 0; //+
@!%w0 bra END;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;
END:
)"},
    {"ReadingAProductBeforeItsCommit", "tensor-race", "A tcgen05.commit behind it", 64,
     TENSOR_BEGIN OPERANDS R"(
@!%w0 bra STORED;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
STORED:
fence.proxy.async.shared::cta;
bar.sync 0;
)" DESCRIPTOR R"(
@!%first bra ISSUED;
tcgen05.mma.cta_group::1.kind::f16 [%r1], %q1, %q1, %r2, %p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%s];
ISSUED:
)" WAIT(0) "//+\n"
           R"(
tcgen05.fence::after_thread_sync;
@!%w0 bra READ;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r1];
tcgen05.wait::ld.sync.aligned;
READ:
)" WAIT(0) "\n" TENSOR_END},
    {"OperandsThatTheTensorCoreDoesNotSee", "proxy", "fence.proxy.async", 64, TENSOR_BEGIN OPERANDS R"(
fence.proxy.async.shared::cta; //+
bar.sync 0;
)" DESCRIPTOR R"(
@!%first bra ISSUED;
tcgen05.mma.cta_group::1.kind::f16 [%r1], %q1, %q1, %r2, %p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%s];
ISSUED:
)" WAIT(0) "\n" TENSOR_END},
    {"OperandsOverwrittenUnderAProduct", "race", "A tcgen05.commit behind it", 64,
     TENSOR_BEGIN OPERANDS R"(
fence.proxy.async.shared::cta;
bar.sync 0;
)" DESCRIPTOR R"(
@!%first bra ISSUED;
tcgen05.mma.cta_group::1.kind::f16 [%r1], %q1, %q1, %r2, %p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%s];
ISSUED:
)" WAIT(0) "//+\n"
           R"(
st.shared.u32 [%r0+4096], 0;
)" WAIT(0) "\n" TENSOR_END},
    {"ABulkLoadThatNobodyWaitsFor", "exit", "under way when the CTA exits", 32, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
bar.warp.sync -1;
@!%first bra END;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 128;
add.u32 %r1, %s, 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%g], 128, [%s];
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0; //+
END:
)"},
    {"AnMbarrierUsedBeforeItsInitialisationIsKnown", "mbarrier", "A barrier of the CTA", 64, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
bar.sync 0; //+
setp.eq.u32 %p, %t, 32;
@%p mbarrier.arrive.shared::cta.b64 _, [%s];
)"},
    // The fence of initialisation is enough where a cluster meets without order.
    {"AnMbarrierInitialisedWithoutItsFence", "mbarrier", "A barrier of the CTA", 64, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
fence.mbarrier_init.release.cluster; //+
barrier.cluster.arrive.relaxed;
barrier.cluster.wait;
setp.eq.u32 %p, %t, 32;
@%p mbarrier.arrive.shared::cta.b64 _, [%s];
)"},
    {"AnMbarrierInitialisedTwice", "mbarrier", "mbarrier.inval must come first", 32, R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
@%first mbarrier.inval.shared::cta.b64 [%s]; //+
@%first mbarrier.init.shared::cta.b64 [%s], 1;
)"},
    {"LanesThatInitialiseAnMbarrierWithDifferentCounts", "mbarrier", "mbarrier.inval must come first", 32, R"(
setp.lt.u32 %p, %l, 2;
add.u32 %r1, %l, 1; //-
mov.b32 %r1, 1; //+
@%p mbarrier.init.shared::cta.b64 [%s], %r1;
)"},
    {"AnMbarrierOverwritten", "mbarrier", "an mbarrier in use", 32, R"(
@%first mbarrier.init.shared::cta.b64 [%s+8], 1;
@%first st.shared.u32 [%s+8], 1; //-
@%first st.shared.u32 [%s+16], 1; //+
)"},
    {"PhasesThatGoByUnseen", "mbarrier", "gone by", 32, R"(
@!%first bra END;
mbarrier.init.shared::cta.b64 [%s], 1;
mbarrier.arrive.shared::cta.b64 _, [%s];
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
mbarrier.arrive.shared::cta.b64 _, [%s];
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 1; //+
mbarrier.arrive.shared::cta.b64 _, [%s];
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0; //+
mbarrier.arrive.shared::cta.b64 _, [%s];
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 1;
END:
)"},
    {"AWarpThatArrivesTwice", "barrier", "for the second time", 64, R"(
@%w1 bra SECOND;
bar.arrive 1, 64;
bar.arrive 1, 64; //-
bra.uni END;
SECOND:
bar.sync 1, 64; //+
END:
)"},
    {"AnMbarrierThatNobodyCompletes", "deadlock", "of the 1 arrivals of this one it has those of nobody", 64,
     R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
bar.sync 0;
@%first mbarrier.arrive.shared::cta.b64 _, [%s]; //+
@%w1 bra WAIT;
bra.uni END;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
END:
)"},
    // Tensor memory under relaxed arrivals: the fences of tcgen05 order it, and nothing else does.
    {"ARelaxedArrivalWithoutFences", "tensor-race", "nothing orders the two", 160, TENSOR_BEGIN R"(
setp.eq.u32 %p, %w, 4;
@%p bra SECOND;
@!%w0 bra DONE;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; //+
bar.warp.sync -1;
@%l0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%s];
bra.uni DONE;
SECOND:
mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p, [%s], 0;
tcgen05.fence::after_thread_sync; //+
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
tcgen05.wait::ld.sync.aligned;
DONE:
)" TENSOR_END},

    // ---- pairs of CTAs
    {"ReadingBeforeACopyOfAPeerIsOver", "race", "mbarrier phase", 32,
     PAIR_BEGIN SEND R"(
bra.uni END;
PEER:
)" EXPECT WAIT_IN(cluster, 0) "//+\n"
                              R"(
ld.shared.u32 %r1, [%r0+512];
)" WAIT_IN(cluster, 0) "\n" PAIR_END,
     false, 2, false, 2},
    {"ReadingBeforeAStoreOfAPeerIsOver", "race", "mbarrier phase", 32,
     PAIR_BEGIN R"(
mad.lo.u32 %r1, %t, 4, %r6;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1+512], 7, [%r6];
bra.uni END;
PEER:
)" EXPECT WAIT_IN(cluster, 0) "//+\n"
                              R"(
ld.shared.u32 %r1, [%r0+512];
)" WAIT_IN(cluster, 0) "\n" PAIR_END,
     false, 2, false, 2},
    // The end of the copy is told to the peer, and by the peer to whoever sent it.
    {"OverwritingTheSourceOfACopyToAPeer", "race", "mbarrier phase", 32,
     PAIR_BEGIN SEND R"(
)" WAIT_IN(cluster, 8) "//+\n"
                       R"(
bar.warp.sync -1;
st.shared.u32 [%r0+256], 3;
)" WAIT_IN(cluster, 8) "//-\n"
                       R"(
bra.uni END;
PEER:
)" EXPECT WAIT_IN(cluster, 0) "\n" ARRIVE_AT_PEER(cluster, 8) "\n" PAIR_END,
     false, 2, false, 2},
    {"ACopyIntoWhatThePeerReads", "race", "nothing orders the two", 32,
     PAIR_BEGIN WAIT_IN(cluster, 8) "//+\n" SEND R"(
bra.uni END;
PEER:
ld.shared.u32 %r1, [%r0+512];
bar.warp.sync -1;
)" ARRIVE_AT_PEER(cluster, 8) "\n" EXPECT WAIT_IN(cluster, 0) "\n" PAIR_END,
     false, 2, false, 2},
    {"AStoreInAPeerAndNoArrival", "race", "nothing orders the two", 32, PAIR_BEGIN R"(
mad.lo.u32 %r1, %t, 4, %r6;
st.shared::cluster.u32 [%r1+512], 7;
bar.warp.sync -1; //+
)" ARRIVE_AT_PEER(cluster, 0) R"(
bra.uni END;
PEER:
)" WAIT_IN(cluster, 0) R"(
ld.shared.u32 %r1, [%r0+512];
)" PAIR_END,
     false, 2, false, 2},
    // Shared memory has no caches that a wait would have to leave; global memory has.
    {"AWaitAtTheScopeOfTheCtaForGlobalMemory", "race", "nothing orders the two", 32,
     PAIR_BEGIN R"(
@%l0 st.global.u32 [%g], 7;
)" ARRIVE_AT_PEER(cluster, 0) R"(
bra.uni END;
PEER:
)" WAIT_IN(cluster, 0) "//+\n" WAIT_IN(cta, 0) "//-\n"
                                               R"(
ld.global.u32 %r1, [%g];
)" PAIR_END,
     false, 2, false, 2},
    {"AFenceOfSharedMemoryForGlobalMemory", "race", "nothing orders the two", 32, PAIR_BEGIN R"(
@%l0 st.global.u32 [%g], 7;
)" ARRIVE_AT_PEER(cluster, 0) R"(
bra.uni END;
PEER:
mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p, [%s], 0;
fence.acquire.sync_restrict::shared::cluster.cluster; //-
fence.acquire.cluster; //+
ld.global.u32 %r1, [%g];
)" PAIR_END,
     false, 2, false, 2},
    {"ARelaxedWaitWithoutAFence", "race", "nothing orders the two", 32, PAIR_BEGIN SEND R"(
mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p, [%s+8], 0;
fence.acquire.sync_restrict::shared::cluster.cluster; //+
bar.warp.sync -1;
st.shared.u32 [%r0+256], 3;
bra.uni END;
PEER:
)" EXPECT WAIT_IN(cluster, 0) "\n" ARRIVE_AT_PEER(cluster, 8) "\n" PAIR_END,
     false, 2, false, 2},
    {"AFlagOfAnotherCtaAtTheScopeOfTheCta", "race", "CTA number 0", 32, R"(
setp.eq.u32 %p, %c, 1;
@%p bra READ;
@%l0 st.global.u32 [%g+256], 1;
@%l0 st.release.gpu.global.u32 [%g], 1; //+
@%l0 st.release.cta.global.u32 [%g], 1; //-
bra.uni END;
READ:
ld.acquire.gpu.global.u32 %r1, [%g];
ld.global.u32 %r2, [%g+256];
END:
)",
     false, 2},

    // ---- strict
    {"AnArrivalWithoutTheFencesOfTcgen05", "tensor-fence", "before_thread_sync", 160, TENSOR_BEGIN R"(
setp.eq.u32 %p, %w, 4;
@%p bra SECOND;
@!%w0 bra DONE;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; //+
bar.warp.sync -1;
@%l0 mbarrier.arrive.shared::cta.b64 _, [%s];
bra.uni DONE;
SECOND:
)" WAIT(0) R"(
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];
tcgen05.wait::ld.sync.aligned;
DONE:
)" TENSOR_END,
     true},
    {"LanesThatInitialiseAnMbarrierTogether", "mbarrier", "one is enough", 32, R"(
setp.lt.u32 %p, %l, 2;
@%p mbarrier.init.shared::cta.b64 [%s], 1; //-
@%first mbarrier.init.shared::cta.b64 [%s], 1; //+
)",
     true},
    {"ProductsOfTwoAccumulators", "mma-order", "only the order of issue", 64, TENSOR_BEGIN OPERANDS R"(
fence.proxy.async.shared::cta;
bar.sync 0;
)" DESCRIPTOR R"(
@!%first bra ISSUED;
tcgen05.mma.cta_group::1.kind::f16 [%r1], %q1, %q1, %r2, %p;
add.u32 %r5, %r1, 4; //-
add.u32 %r5, %r1, 8; //+
tcgen05.mma.cta_group::1.kind::f16 [%r5], %q1, %q1, %r2, %p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%s];
ISSUED:
)" WAIT(0) "\n" TENSOR_END,
     true},
    {"ABulkStoreThatNobodyWaitsFor", "exit", "has not been waited for", 32, R"(
st.shared.u32 [%r0], 1;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@!%first bra END;
cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0; //+
END:
)",
     true},

    {"AWaitForAPeersCopyAtTheScopeOfTheCta", "scope", ".acquire.cluster", 32,
     PAIR_BEGIN SEND R"(
bra.uni END;
PEER:
)" EXPECT WAIT_IN(cluster, 0) "//+\n" WAIT_IN(cta, 0) "//-\n"
                                                      R"(
ld.shared.u32 %r1, [%r0+512];
)" PAIR_END,
     true, 2, false, 2},
    {"AnArrivalAtAPeerAtTheScopeOfTheCta", "scope", ".release.cluster", 32,
     PAIR_BEGIN R"(
mad.lo.u32 %r1, %t, 4, %r6;
st.shared::cluster.u32 [%r1+512], 7;
bar.warp.sync -1;
)" ARRIVE_AT_PEER(cluster, 0) "//+\n" ARRIVE_AT_PEER(cta, 0) "//-\n"
                                                             R"(
bra.uni END;
PEER:
)" WAIT_IN(cluster, 0) R"(
ld.shared.u32 %r1, [%r0+512];
)" PAIR_END,
     true, 2, false, 2},
    // What the peer was told at a scope that does not reach it cannot pass on.
    {"AnAcknowledgementOfAWaitAtTheScopeOfTheCta", "scope", ".acquire.cluster", 32, PAIR_BEGIN SEND R"(
mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p, [%s+8], 0;
fence.acquire.sync_restrict::shared::cluster.cluster;
bar.warp.sync -1;
st.shared.u32 [%r0+256], 3;
bra.uni END;
PEER:
)" EXPECT WAIT_IN(cluster, 0) "//+\n" WAIT_IN(cta, 0) "//-\n" ARRIVE_AT_PEER(cluster, 8) "\n" PAIR_END,
     true, 2, false, 2},
};

INSTANTIATE_TEST_SUITE_P(All, Rules, ::testing::ValuesIn(kRules),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace flashback::emulator::checking
