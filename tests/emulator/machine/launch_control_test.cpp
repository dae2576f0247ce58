// clusterlaunchcontrol: clusters that take over the work of others do all of it once, whatever the schedule.
#include <gtest/gtest.h>

#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

// Each cluster does the work of its CTAs, then asks for more until there is none: it counts the visits of
// each CTA's place, and notes there which CTA came. `limit`: requests after which it stops to ask.
std::string persistent(int limit) {
  return module_of(8, fmt::format(R"(
.reg .b32 %m, %t, %x, %y, %z, %rank, %parity, %n, %v, %linear, %fx, %sx, %count;
.reg .b64 %out, %at;
.reg .b128 %response;
.reg .pred %first, %leads, %done, %more, %few;
ld.param.u64 %out, [p];
mov.u32 %m, dynamic;
mov.u32 %t, %tid.x;
mov.u32 %rank, %cluster_ctarank;
mov.u32 %x, %ctaid.x;
mov.u32 %y, %ctaid.y;
mov.u32 %z, %ctaid.z;
mov.u32 %sx, %ctaid.x;
mov.u32 %fx, %cluster_ctaid.x;
mov.u32 %parity, 0;
mov.u32 %count, 0;
setp.eq.u32 %first, %t, 0;
setp.eq.and.u32 %leads, %rank, 0, %first;
@%first mbarrier.init.shared::cta.b64 [%m], 1;
fence.mbarrier_init.release.cluster;
WORK:
mov.u32 %n, %nctaid.y;
mad.lo.u32 %linear, %z, %n, %y;
mov.u32 %n, %nctaid.x;
mad.lo.u32 %linear, %linear, %n, %x;
mul.wide.u32 %at, %linear, 8;
add.s64 %at, %at, %out;
@%first ld.global.u32 %v, [%at];
add.u32 %v, %v, 1;
@%first st.global.u32 [%at], %v;
@%first st.global.u32 [%at+4], %sx;
setp.ge.u32 %few, %count, {};
@%few bra END;
add.u32 %count, %count, 1;
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 16;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@%leads clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%m+16], [%m];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%m], %parity;
@!%done bra WAIT;
xor.b32 %parity, %parity, 1;
ld.shared.b128 %response, [%m+16];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %more, %response;
@!%more bra END;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{%x, %y, %z, _}}, %response;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %response;
add.u32 %x, %x, %fx;
bra WORK;
END:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)",
                                  limit));
}

constexpr Dim3 kGrid{8, 50, 3};
constexpr std::size_t kCtas = 8 * 50 * 3;

struct Launched {
  std::vector<std::uint32_t> words;
  std::uint64_t ctas;
};

Launched run(const std::string& ptx, const MachineOptions& options, Dim3 cluster,
             std::uint32_t shared_bytes) {
  PtxBench bench(options);
  const Address out = bench.upload(std::vector<std::uint32_t>(2 * kCtas));
  const Status status = bench.run(ptx, out, {32, 1, 1}, kGrid, shared_bytes, cluster);
  EXPECT_TRUE(status.ok()) << status.sentence();
  Executed executed;
  EXPECT_TRUE(bench.workbench().executed(&executed).ok());
  return {bench.download<std::uint32_t>(out, 2 * kCtas), executed.ctas};
}

// One CTA an SM, so that most clusters wait at the start.
constexpr std::uint32_t kWholeSm = 200 * 1024;

TEST(LaunchControl, AllWorkIsDoneOnce) {
  for (const int limit : {1000, 2, 0}) {
    for (const Dim3 cluster : {Dim3{1, 1, 1}, Dim3{2, 1, 1}}) {
      for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
        const Launched one = run(persistent(limit), with(completion, 1, 1), cluster, kWholeSm);
        for (std::size_t cta = 0; cta < kCtas; ++cta) ASSERT_EQ(one.words[2 * cta], 1u) << "CTA " << cta;
        // As many clusters start as the GPU holds, and those that nobody takes over.
        const std::uint64_t residents = 148 / cluster.x * cluster.x;
        EXPECT_EQ(one.ctas, limit == 1000 ? residents : limit == 0 ? kCtas : one.ctas);
        EXPECT_LT(one.ctas, limit == 0 ? kCtas + 1 : kCtas);
        // Who did what does not depend on the host threads.
        EXPECT_EQ(run(persistent(limit), with(completion, 1, 3), cluster, kWholeSm).words, one.words);
      }
    }
  }
}

TEST(LaunchControl, FollowsTheStartOrder) {
  const Launched ascending = run(persistent(1000), with(Completion::kEager, 1, 2), {1, 1, 1}, kWholeSm);
  const Launched shuffled = run(persistent(1000), with(Completion::kEager, 1, 2, true), {1, 1, 1}, kWholeSm);
  EXPECT_NE(ascending.words, shuffled.words);
  for (std::size_t cta = 0; cta < kCtas; ++cta) ASSERT_EQ(shuffled.words[2 * cta], 1u) << "CTA " << cta;
}

// CTAs that all are resident have nothing to take over.
TEST(LaunchControl, NothingWaitsWhereAllAreResident) {
  const Launched all = run(persistent(1000), with(Completion::kEager, 0, 2), {1, 1, 1}, 1024);
  EXPECT_EQ(all.ctas, kCtas);
}

}  // namespace
}  // namespace flashback::emulator::testing
