// Clusters: where their CTAs are, that they run together, that a peer's memory is reached and left alone when
// it is gone, and that neither the completion order nor the number of host threads shows.
#include <gtest/gtest.h>

#include "tests/emulator/machine/kernel_of_sums.h"
#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

// Schedules under which a right program must give the same bytes.
std::vector<MachineOptions> all_schedules() {
  std::vector<MachineOptions> schedules;
  for (const int threads : {1, 3}) {
    schedules.push_back(with(Completion::kEager, 0, threads));
    schedules.push_back(with(Completion::kLazy, 0, threads));
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      schedules.push_back(with(Completion::kRandom, seed, threads));
      schedules.back().schedule.shuffle_ctas = true;
    }
  }
  return schedules;
}

std::string name_of(const MachineOptions& options) {
  return fmt::format("completion {}, seed {}, {} threads", static_cast<int>(options.schedule.completion),
                     options.schedule.seed, options.threads);
}

// Each CTA writes eight words to its place in the grid.
const std::string kPlaces = module_of(8, R"(
.reg .b32 %a<8>, %linear, %n;
.reg .b64 %out, %at;
ld.param.u64 %out, [p];
mov.u32 %a0, %ctaid.z;
mov.u32 %n, %nctaid.y;
mov.u32 %linear, %ctaid.y;
mad.lo.u32 %linear, %a0, %n, %linear;
mov.u32 %n, %nctaid.x;
mov.u32 %a0, %ctaid.x;
mad.lo.u32 %linear, %linear, %n, %a0;
mul.wide.u32 %at, %linear, 32;
add.s64 %at, %at, %out;
mov.u32 %a0, %clusterid.x;
mov.u32 %a1, %clusterid.y;
mov.u32 %a2, %clusterid.z;
mov.u32 %a3, %cluster_ctaid.x;
mov.u32 %a4, %cluster_ctaid.y;
mov.u32 %a5, %cluster_ctaid.z;
mov.u32 %a6, %cluster_ctarank;
mov.u32 %a7, %nclusterid.x;
st.global.v4.u32 [%at], {%a0, %a1, %a2, %a3};
st.global.v4.u32 [%at+16], {%a4, %a5, %a6, %a7};
)");

TEST(Clusters, TileTheGrid) {
  const Dim3 grid{6, 4, 6}, cluster{3, 2, 2};
  for (const bool shuffled : {false, true}) {
    MachineOptions options = with(Completion::kEager, 7);
    options.schedule.shuffle_ctas = shuffled;
    PtxBench bench(options);
    const Address out = bench.upload(std::vector<std::uint32_t>(8 * 144));
    const Status status = bench.run(kPlaces, out, {32, 1, 1}, grid, 0, cluster);
    ASSERT_TRUE(status.ok()) << status.sentence();
    std::vector<std::uint32_t> expected;
    for (std::uint32_t z = 0; z < grid.z; ++z) {
      for (std::uint32_t y = 0; y < grid.y; ++y) {
        for (std::uint32_t x = 0; x < grid.x; ++x) {
          const std::uint32_t words[] = {
              x / 3, y / 2, z / 2, x % 3, y % 2, z % 2, x % 3 + 3 * (y % 2 + 2 * (z % 2)), 2};
          expected.insert(expected.end(), std::begin(words), std::end(words));
        }
      }
    }
    EXPECT_EQ(bench.download<std::uint32_t>(out, expected.size()), expected);
  }
}

// A ring of four CTAs: each passes 256 bytes on to the next rank, four times, by bulk copies between shared
// memories; two buffers, full and empty mbarriers, the empty ones told by remote arrivals. In the end each
// holds its own bytes again plus what the four CTAs have added. `wait` and `signal` can be left out.
std::string ring(const char* wait_full, const char* wait_empty) {
  return module_of(8,
                   fmt::format(R"(
.reg .b32 %t, %rank, %m, %next, %previous, %i, %v, %at, %parity, %buffer, %to, %from, %full, %empty, %peer_full, %w;
.reg .b64 %out, %place;
.reg .pred %p, %first, %done, %last;
ld.param.u64 %out, [p];
mov.u32 %t, %tid.x;
mov.u32 %rank, %cluster_ctarank;
mov.u32 %m, dynamic;
setp.eq.u32 %first, %t, 0;
@!%first bra READY;
mbarrier.init.shared::cta.b64 [%m], 1;
mbarrier.init.shared::cta.b64 [%m+8], 1;
mbarrier.init.shared::cta.b64 [%m+16], 1;
mbarrier.init.shared::cta.b64 [%m+24], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 256;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m+8], 256;
fence.mbarrier_init.release.cluster;
READY:
shl.b32 %at, %t, 2;
add.u32 %at, %at, %m;
mov.u32 %v, %ctaid.x;
mad.lo.u32 %v, %v, 1000, %t;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
add.u32 %next, %rank, 1;
and.b32 %next, %next, 3;
add.u32 %previous, %rank, 3;
and.b32 %previous, %previous, 3;
mov.u32 %i, 0;
LOOP:
and.b32 %buffer, %i, 1;
shr.u32 %parity, %i, 1;
and.b32 %parity, %parity, 1;
// Behind the barriers: what is sent at 1024 and 1536, what comes at 2048 and 3072.
mad.lo.u32 %empty, %buffer, 8, %m;
xor.b32 %w, %parity, 1;
{1}
mad.lo.u32 %w, %buffer, 512, %at;
add.u32 %v, %v, 1;
st.shared.u32 [%w+1024], %v;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%first bra SENT;
mad.lo.u32 %from, %buffer, 512, %m;
add.u32 %from, %from, 1024;
mad.lo.u32 %to, %buffer, 1024, %m;
mapa.shared::cluster.u32 %to, %to, %next;
mad.lo.u32 %full, %buffer, 8, %m;
mapa.shared::cluster.u32 %peer_full, %full, %next;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%to+2048], [%from], 256, [%peer_full];
SENT:
mad.lo.u32 %full, %buffer, 8, %m;
{0}
mad.lo.u32 %w, %buffer, 1024, %at;
ld.shared.u32 %v, [%w+2048];
bar.sync 0;
@!%first bra NEXT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 256;
add.u32 %empty, %full, 16;
mapa.shared::cluster.u32 %empty, %empty, %previous;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%empty];
NEXT:
add.u32 %i, %i, 1;
setp.lt.u32 %last, %i, 4;
@%last bra LOOP;
mov.u32 %w, %ctaid.x;
mul.wide.u32 %place, %w, 256;
add.s64 %out, %out, %place;
mul.wide.u32 %place, %t, 4;
add.s64 %out, %out, %place;
st.global.u32 [%out], %v;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)",
                               wait_full, wait_empty),
                   ".maxntid 64");
}
const char* kWaitFull =
    "FULL: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%full], %parity;\n@!%done bra "
    "FULL;";
const char* kWaitEmpty =
    "EMPTY: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%empty+16], %w;\n@!%done bra "
    "EMPTY;";

std::vector<std::uint32_t> run_ring(const std::string& ptx, const MachineOptions& options) {
  PtxBench bench(options);
  const Address out = bench.upload(std::vector<std::uint32_t>(12 * 64));
  const Status status = bench.run(ptx, out, {64, 1, 1}, {12, 1, 1}, 8192, {4, 1, 1});
  EXPECT_TRUE(status.ok()) << status.sentence();
  return bench.download<std::uint32_t>(out, 12 * 64);
}

std::vector<std::uint32_t> ring_sums() {
  std::vector<std::uint32_t> expected;
  for (std::uint32_t cta = 0; cta < 12; ++cta) {
    for (std::uint32_t thread = 0; thread < 64; ++thread) expected.push_back(1000 * cta + thread + 4);
  }
  return expected;
}

TEST(Clusters, GiveTheSameBytesUnderEverySchedule) {
  const std::string ptx = ring(kWaitFull, kWaitEmpty);
  for (const MachineOptions& options : all_schedules()) {
    EXPECT_EQ(run_ring(ptx, options), ring_sums()) << name_of(options);
  }
}

// Who does not wait for the peer's bytes sees old ones when they come late; here it runs on and arrives too
// soon.
TEST(Clusters, LateCopiesShowAMissingWait) {
  PtxBench bench(with(Completion::kLazy));
  const Address out = bench.upload(std::vector<std::uint32_t>(12 * 64));
  const Status status = bench.run(ring("", kWaitEmpty), out, {64, 1, 1}, {12, 1, 1}, 8192, {4, 1, 1});
  EXPECT_NE(status.sentence().find("an arrival at an mbarrier where 0 of 1 are pending"), std::string::npos)
      << status.sentence();
}

// The reductions of a cluster's CTAs take effect in an order that no host thread changes.
const std::string kSums = kernel_of_sums(R"(
mov.u32 %delay, %cluster_ctarank;
mul.lo.u32 %i, %delay, 5000;
)",
                                         R"(
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)");

TEST(Clusters, ReduceInAnOrderThatThreadsDoNotChange) {
  const auto sums = [](const MachineOptions& options) {
    PtxBench bench(options);
    const Address sum = bench.upload(std::vector<float>(16));
    const Status status = bench.run(kSums, sum, {32, 1, 1}, {240, 1, 1}, 1024, {2, 1, 1});
    EXPECT_TRUE(status.ok()) << status.sentence();
    return bench.download<float>(sum, 16);
  };
  for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
    const std::vector<float> one = sums(with(completion, 5, 1));
    for (const int threads : {2, 3, 8}) EXPECT_EQ(sums(with(completion, 5, threads)), one);
    EXPECT_NEAR(one[0], 6.0602f, 1e-3);  // harmonic number 240
  }
}

// Work that is under way when the peer exits reaches for memory that is gone.
TEST(Clusters, CopyToACtaThatHasExited) {
  const std::string ptx = module_of(8, R"(
.reg .b32 %m, %t, %rank, %peer;
.reg .b64 %from;
.reg .pred %p;
ld.param.u64 %from, [p];
mov.u32 %m, dynamic;
mov.u32 %t, %tid.x;
mov.u32 %rank, %cluster_ctarank;
setp.ne.u32 %p, %t, 0;
@%p bra MEET;
mbarrier.init.shared::cta.b64 [%m], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 16;
fence.mbarrier_init.release.cluster;
MEET:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.ne.or.u32 %p, %rank, 0, %p;
@%p exit;
mapa.shared::cluster.u32 %peer, %m, 1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%peer+16], [%from], 16, [%peer];
)");
  PtxBench bench(with(Completion::kLazy));
  const Address from = bench.upload(std::vector<std::uint32_t>(4));
  const std::string sentence = bench.run(ptx, from, {32, 1, 1}, {2, 1, 1}, 64, {2, 1, 1}).sentence();
  EXPECT_NE(
      sentence.find("a bulk copy of 16 bytes at shared address 0x1000410, in the shared memory of CTA (1, "
                    "0, 0), rank 1 of the cluster, which has exited"),
      std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("CTA (0, 0, 0), warp 0, PTX line"), std::string::npos) << sentence;
}

// CTAs of three ranks wait in three ways, one has exited: the sentence has them all.
TEST(Clusters, DeadlockTellsOfEveryCta) {
  const std::string ptx = module_of(8, R"(
.reg .b32 %m, %rank;
.reg .pred %p;
mov.u32 %m, dynamic;
mov.u32 %rank, %cluster_ctarank;
setp.eq.u32 %p, %rank, 3;
@%p exit;
setp.eq.u32 %p, %rank, 0;
@%p bra AT_CLUSTER;
setp.eq.u32 %p, %rank, 1;
@%p bra AT_MBARRIER;
bar.sync 0, 64;
AT_MBARRIER:
.reg .b32 %t;
.reg .pred %q;
mov.u32 %t, %tid.x;
setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared::cta.b64 [%m], 1;
bar.warp.sync -1;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 0;
@!%p bra WAIT;
AT_CLUSTER:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)");
  PtxBench bench(with(Completion::kLazy));
  const std::string sentence = bench.run(ptx, Address{0}, {32, 1, 1}, {4, 1, 1}, 64, {4, 1, 1}).sentence();
  for (const char* part :
       {"deadlock in test, cluster of CTA (0, 0, 0) and 3 more: no warp can go on",
        "CTA rank 0, warp 0 at PTX line", "waits at the cluster barrier, where 1 of 3 warps have arrived",
        "CTA rank 1, warp 0 at PTX line",
        "mbarrier at shared address 0x1000400 (offset 0), which is in phase 0",
        "CTA rank 2, warp 0 at PTX line", "waits at barrier 0, where 32 of 64 threads have arrived",
        "CTA rank 3, has exited"}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << part << "\n" << sentence;
  }
}

// What a launch with a cluster is refused for.
TEST(Clusters, LaunchesThatCudaRefuses) {
  const auto sentence = [](const std::string& ptx, Dim3 grid, Dim3 cluster) {
    PtxBench bench;
    return bench.run(ptx, Address{0}, {32, 1, 1}, grid, 0, cluster).sentence();
  };
  const std::string plain = module_of(8, ""), pairs = module_of(8, "", ".reqnctapercluster 2, 1, 1");
  EXPECT_EQ(sentence(plain, {6, 4, 1}, {3, 2, 1}), "");
  EXPECT_EQ(sentence(plain, {16, 1, 1}, {16, 1, 1}), "");
  EXPECT_NE(sentence(plain, {34, 1, 1}, {17, 1, 1}).find("it must have 1 to 16 CTAs"), std::string::npos);
  EXPECT_NE(sentence(plain, {2, 1, 1}, {2, 0, 1}).find("it must have 1 to 16 CTAs"), std::string::npos);
  EXPECT_NE(
      sentence(plain, {6, 4, 1}, {4, 2, 1}).find("its cluster (4, 2, 1); each extent must be a multiple"),
      std::string::npos);
  EXPECT_EQ(sentence(pairs, {4, 1, 1}, {2, 1, 1}), "");
  EXPECT_EQ(sentence(pairs, {4, 1, 1}, {1, 1, 1}), "") << "the launch names none: the entry's own";
  EXPECT_NE(sentence(pairs, {4, 1, 1}, {4, 1, 1}).find("the entry is compiled for (2, 1, 1)"),
            std::string::npos);
  EXPECT_NE(sentence(pairs, {3, 1, 1}, {1, 1, 1}).find("must be a multiple"), std::string::npos);
  const std::string four = module_of(8, "", ".explicitcluster .maxclusterrank 4");
  EXPECT_EQ(sentence(four, {8, 1, 1}, {2, 2, 1}),
            "the grid of test is (8, 1, 1), its cluster (2, 2, 1); each "
            "extent must be a multiple of the cluster's");
  EXPECT_EQ(sentence(four, {8, 1, 1}, {4, 1, 1}), "");
  EXPECT_NE(sentence(four, {8, 1, 1}, {8, 1, 1}).find("compiled for 4 CTAs at most"), std::string::npos);
}

}  // namespace
}  // namespace flashback::emulator::testing
