// Programs whose time can be counted on the fingers.
#include "emulator/timing/replay.h"

#include <fmt/format.h>

#include "tests/emulator/timing/recorded_program.h"

namespace flashback::emulator::timing {
namespace {

std::string repeated(int n, const std::string& format) {
  std::string text;
  for (int i = 0; i < n; ++i) text += fmt::format(fmt::runtime(format), i % 32);
  return text;
}

double cycles(const std::string& body, int warps, const Costs& costs = nominal(Arch::kSm100)) {
  const Outcome outcome = replay(record(body, warps), costs, nullptr);
  EXPECT_TRUE(outcome.ok()) << outcome.error;
  return outcome.cycles;
}

// Of n more instructions, beyond what the rest of the program takes.
double added(const std::string& format, int warps, const Costs& costs = nominal(Arch::kSm100)) {
  const std::string begin =
      "mov.u32 %r0, %tid.x;\ncvt.rn.f32.u32 %f40, %r0;\n" + repeated(32, "add.f32 %f{}, %f40, %f40;\n");
  return cycles(begin + repeated(320, format), warps, costs) -
         cycles(begin + repeated(160, format), warps, costs);
}

TEST(Replay, DependentInstructionsWaitForTheResultBefore) {
  Costs costs = nominal(Arch::kSm100);
  EXPECT_NEAR(added("fma.rn.f32 %f41, %f41, %f41, %f{};\n", 1), 160 * costs.arithmetic_latency, 8);
  costs.arithmetic_latency = 7;
  EXPECT_NEAR(added("fma.rn.f32 %f41, %f41, %f41, %f{};\n", 1, costs), 160 * 7, 14);
}

TEST(Replay, IndependentInstructionsTakeThePipe) {
  const Costs costs = nominal(Arch::kSm100);
  EXPECT_NEAR(added("fma.rn.f32 %f{0}, %f40, %f40, %f40;\n", 1), 160 * costs.fma, 8);
  EXPECT_NEAR(added("ex2.approx.ftz.f32 %f{0}, %f40;\n", 1), 160 * costs.special, 16);
  // Warps 0 and 4 share a sub-partition, warps 0 and 1 do not.
  EXPECT_NEAR(added("ex2.approx.ftz.f32 %f{0}, %f40;\n", 4), 160 * costs.special, 16);
  EXPECT_NEAR(added("ex2.approx.ftz.f32 %f{0}, %f40;\n", 8), 2 * 160 * costs.special, 32);
}

TEST(Replay, WhatTheAssemblerDoesAwayWithTakesNoTime) {
  EXPECT_EQ(added("mov.f32 %f{0}, %f40;\n", 1), 0);
  EXPECT_EQ(added("mov.b64 %rd1, {{%r0, %r{0}}};\n", 1), 0);
  EXPECT_EQ(added("neg.f32 %f{0}, %f40;\n", 1), 0);
  EXPECT_EQ(added("add.s32 %r{0}, 3, 4;\n", 1), 0);              // constants
  EXPECT_NEAR(added("add.s32 %r{0}, %r0, %r0;\n", 1), 320, 16);  // half rate
}

TEST(Replay, LoadsOfOneWordAreABroadcastAndConflictsQueue) {
  Costs costs = nominal(Arch::kSm100);
  const std::string same = "mov.u32 %r50, smem;\n", apart =
                                                        "mov.u32 %r51, %tid.x;\nmov.u32 %r49, smem;\n"
                                                        "and.b32 %r51, %r51, 7;\nshl.b32 %r51, %r51, 7;\n"
                                                        "add.u32 %r50, %r49, %r51;\n";
  const auto load = [&](const std::string& address, int n) {
    std::string text = address;
    for (int i = 0; i < n; ++i) {
      text +=
          fmt::format("ld.shared.b32 %r{0}, [%r50+{1}];\nadd.u32 %r60, %r{0}, %r50;\n", i % 40, 4 * (i % 8));
    }
    return cycles(text, 4, costs);
  };
  // Four warps, a load each in two cycles of its sub-partition; the port serves 128 bytes of registers a
  // cycle.
  EXPECT_NEAR(load(same, 400) - load(same, 200), 4 * 200, 16);
  // Eight words of one bank: eight cycles each.
  EXPECT_NEAR(load(apart, 400) - load(apart, 200), 4 * 200 * 8, 64);
}

constexpr const char* kHandOver = R"(
mov.u32 %r1, smem;
mov.u32 %r2, %tid.x;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra initialised;
mbarrier.init.shared::cta.b64 [%r1], 1;
initialised:
bar.sync 0;
setp.lt.u32 %p2, %r2, 32;
@%p2 bra waits;
setp.ne.u32 %p3, %r2, 32;
{}
@%p3 bra over;
mbarrier.arrive.shared::cta.b64 _, [%r1];
bra.uni over;
waits:
mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;
@!%p4 bra waits;
over:
)";

TEST(Replay, AnArrivalTakesItsTimeAndWakesWhoWaits) {
  Costs costs = nominal(Arch::kSm100);
  const std::string text = fmt::format(fmt::runtime(kHandOver), "");
  const double before = cycles(text, 2, costs);
  costs.arrive += 100;
  EXPECT_EQ(cycles(text, 2, costs), before + 100);
  costs.wake += 10;
  EXPECT_EQ(cycles(text, 2, costs), before + 110);
  costs.ask += 1000;  // who waits is woken, and does not ask again
  EXPECT_EQ(cycles(text, 2, costs), before + 110);
}

TEST(Replay, NobodyLeavesABarrierBeforeTheLastHasCome) {
  Costs costs = nominal(Arch::kSm100);
  const std::string slow = "mov.u32 %r2, %tid.x;\nsetp.lt.u32 %p2, %r2, 224;\n@%p2 bra meets;\n" +
                           repeated(100, "fma.rn.f32 %f41, %f41, %f41, %f{0};\n") +
                           "meets:\nbar.sync 1, 256;\n";
  const double before = cycles(slow, 8, costs);
  EXPECT_GT(before, 100 * costs.arithmetic_latency);
  costs.barrier += 40;
  EXPECT_EQ(cycles(slow, 8, costs), before + 40);
  costs.barrier_warp += 1;
  EXPECT_EQ(cycles(slow, 8, costs), before + 48);
}

TEST(Replay, ATimelineSaysWhatAWaitWasFor) {
  const std::string text =
      "//@ work\n" + fmt::format(fmt::runtime(kHandOver), "//@ late\nadd.u32 %r9, %r2, %r2;");
  const Recording recording = record(text, 2);
  Timeline timeline;
  ASSERT_TRUE(replay(recording, nominal(Arch::kSm100), &timeline).ok());
  int waits = 0;
  for (const Span& span : timeline.spans) {
    if (!span.waits || span.actor.warp != 0 || span.until.agent != Agent::kWarp) continue;
    if (timeline.kernel->sections[span.until.section] == "late" && span.until.warp == 1) ++waits;
  }
  EXPECT_EQ(waits, 1);
  ASSERT_EQ(timeline.meetings.size(), 1u);
  EXPECT_EQ(timeline.meetings[0].warps, 2u);
}

TEST(Recorder, AnOpcodeWithoutACostIsAnErrorThatNamesIt) {
  Recorder recorder("test", [](std::uint64_t) { return true; });
  EXPECT_TRUE(run("mov.u32 %r1, %tid.x;\npopc.b32 %r2, %r1;", 1, &recorder).ok());
  EXPECT_EQ(recorder.error(), "PTX line 13: `popc.b32` has no cost in the timing model (entry test)");
  EXPECT_TRUE(recorder.take().empty());
}

TEST(Costs, EachConstantHasItsRangeAndSource) {
  for (Arch arch : {Arch::kSm100, Arch::kSm90}) {
    for (const Constant& constant : constants(arch)) {
      EXPECT_LE(constant.low, constant.nominal) << constant.name;
      EXPECT_LE(constant.nominal, constant.high) << constant.name;
      EXPECT_NE(std::string_view(constant.source), "") << constant.name;
      EXPECT_TRUE(!constant.open || constant.low < constant.high) << constant.name;
    }
  }
}

}  // namespace
}  // namespace flashback::emulator::timing
