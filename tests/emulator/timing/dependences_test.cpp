// What must come first: in programs small enough to say, and in the kernels under costs that nobody expects.
#include "emulator/timing/dependences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/recorded.h"
#include "emulator/timing/replay.h"
#include "tests/emulator/timing/recorded_program.h"

namespace flashback::emulator::timing {
namespace {

// Warps 0 and 1 meet, then do what `first` and `second` say.
std::string two_warps(const std::string& first, const std::string& second) {
  return "mov.u32 %r1, smem;\nmov.u32 %r2, %tid.x;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra initialised;\n"
         "mbarrier.init.shared::cta.b64 [%r1], 2;\ninitialised:\nbar.sync 0;\n"
         "setp.ne.u32 %p3, %r2, 32;\nsetp.lt.u32 %p2, %r2, 32;\n@!%p2 bra other;\n" +
         first + "bra.uni over;\nother:\n" + second + "over:\n";
}
std::string section(const std::string& name) {
  return "//@ " + name + "\nadd.u32 %r9, %r2, %r2;\n";
}
const std::string kWait = "ask:\nmbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;\n@!%p4 bra ask;\n";
std::string arrive(int count) {
  return fmt::format("@%p3 bra on{0};\nmbarrier.arrive.shared::cta.b64 _, [%r1], {0};\non{0}:\n", count);
}

TEST(Dependences, WhoWaitsComesAfterWhatWasDoneBeforeTheArrival) {
  const Dependences found(record(two_warps(section("own") + kWait + section("woken"),
                                           section("early") + arrive(2) + section("late") + arrive(1)),
                                 2));
  ASSERT_EQ(found.error(), "");
  ASSERT_EQ(found.sections(0), 2u);
  ASSERT_EQ(found.sections(1), 2u);
  EXPECT_TRUE(found.before(0, 0, 0, 1));
  EXPECT_FALSE(found.before(0, 1, 0, 0));
  EXPECT_TRUE(found.before(1, 0, 0, 1));   // early, woken
  EXPECT_FALSE(found.before(1, 0, 0, 0));  // early, own
  EXPECT_FALSE(found.before(0, 0, 1, 0));
  EXPECT_FALSE(found.before(1, 1, 0, 1));  // late, woken
  EXPECT_FALSE(found.before(0, 1, 1, 1));
}

TEST(Dependences, AtABarrierAllComeAfterAllAndWhoOnlyArrivesDoesNot) {
  for (const bool meets : {true, false}) {
    const Dependences found(
        record(two_warps(section("a") + "bar.sync 1, 64;\n" + section("b"),
                         section("c") + (meets ? "bar.sync" : "bar.arrive") + " 1, 64;\n" + section("d")),
               2));
    EXPECT_TRUE(found.before(1, 0, 0, 1)) << meets;   // c, b
    EXPECT_EQ(found.before(0, 0, 1, 1), meets);       // a, d
    EXPECT_FALSE(found.before(0, 0, 1, 0)) << meets;  // a, c
    EXPECT_FALSE(found.before(0, 1, 1, 1)) << meets;  // b, d
  }
}

// Each constant at a tenth or at twenty times what it is, drawn anew: what must come first does.
TEST(Dependences, HoldWhateverEverythingTakes) {
  for (Arch arch : {Arch::kSm90, Arch::kSm100}) {
    const int tiles = 4;
    const bench::Recordings recordings = bench::record(arch, Problem{}, {&tiles, 1});
    const Recording& recording = recordings.at(tiles);
    const Dependences found(recording);
    ASSERT_EQ(found.error(), "");
    std::uint32_t draw = 1;
    std::size_t ordered = 0, pairs = 0;
    for (int setting = 0; setting < 8; ++setting) {
      Costs costs = nominal(arch);
      for (const Constant& constant : constants(arch)) {
        draw = draw * 1664525 + 1013904223;
        if (std::string_view(constant.name) != "shared_ports") costs.*constant.value *= draw >> 31 ? 20 : 0.1;
      }
      const Outcome outcome = replay(recording, costs, nullptr);
      ASSERT_TRUE(outcome.ok()) << outcome.error;
      std::map<std::uint16_t, std::vector<double>> begins;
      for (const Outcome::Begin& begin : outcome.begins) begins[begin.warp].push_back(begin.time);
      for (const auto& [w, of_w] : begins) {
        ASSERT_EQ(of_w.size(), found.sections(w));
        for (const auto& [v, of_v] : begins) {
          for (std::uint32_t i = 0; v != w && i < of_w.size(); ++i) {
            for (std::uint32_t j = 0; j < of_v.size(); ++j) {
              ++pairs;
              if (!found.before(w, i, v, j)) continue;
              ++ordered;
              EXPECT_LE(of_w[i], of_v[j]) << name(arch) << " warp " << w << " section " << i << ", warp " << v
                                          << " section " << j << ", setting " << setting;
            }
          }
        }
      }
    }
    EXPECT_GT(ordered, pairs / 5);
    EXPECT_LT(ordered, pairs / 2);
  }
}

}  // namespace
}  // namespace flashback::emulator::timing
