// Tensor loads into several CTAs of a cluster, and where their signals go.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/machine/units/tensor_map.h"
#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

struct Parameters {
  TensorMap map;
  Address out;
  std::uint64_t unused = 0;
};

constexpr std::uint32_t kRanks = 4, kBoxWords = 8 * 4;  // rows of 8 floats

// Four CTAs of a warp. Every mbarrier waits for the bytes in `expected[rank]`, where those are not 0; then
// `loads`, executed by thread 0 of each CTA; then each CTA copies its two boxes out.
std::string kernel(const char* loads) {
  return module_of(sizeof(Parameters), fmt::format(R"(
.reg .b32 %m, %s, %t, %rank, %v, %w, %leader, %expected, %y, %zero;
.reg .b64 %map, %out, %at;
.reg .b16 %mask;
.reg .pred %first, %done, %waits, %p, %r0, %r3;
mov.b64 %map, p;
cvta.param.u64 %map, %map;
ld.param.u64 %out, [p+128];
mov.u32 %t, %tid.x;
mov.u32 %rank, %cluster_ctarank;
mov.u32 %m, dynamic;
add.u32 %s, %m, 128;
mov.u32 %zero, 0;
setp.eq.u32 %first, %t, 0;
setp.eq.and.u32 %r0, %rank, 0, %first;
setp.eq.and.u32 %r3, %rank, 3, %first;
@%first mbarrier.init.shared::cta.b64 [%m], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
{}
setp.ne.u32 %waits, %expected, 0;
and.pred %p, %waits, %first;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], %expected;
@!%waits bra MEET;
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%m], 0;
@!%done bra WAIT;
MEET:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
shl.b32 %w, %t, 2;
add.u32 %v, %s, %w;
mul.wide.u32 %at, %rank, 256;
add.s64 %out, %out, %at;
cvt.u64.u32 %at, %w;
add.s64 %out, %out, %at;
ld.shared.u32 %w, [%v];
st.global.u32 [%out], %w;
ld.shared.u32 %w, [%v+128];
st.global.u32 [%out+128], %w;
)",
                                                   loads));
}

// The tensor has 8 columns and 16 rows, row r of which is all r; -1 stands for a box that nobody loads.
std::vector<int> first_rows(const std::string& ptx, Completion completion, std::string* sentence) {
  MachineOptions options;
  options.schedule.completion = completion;
  options.schedule.seed = 9;
  PtxBench bench(options);
  std::vector<float> tensor;
  for (int i = 0; i < 8 * 16; ++i) tensor.push_back(static_cast<float>(i / 8));
  TensorMapRequest request;
  request.base = bench.upload(tensor);
  request.type = ElementType::kF32;
  request.swizzle = Swizzle::kNone;
  request.rank = 2;
  request.dims[0] = 8;
  request.dims[1] = 16;
  request.strides[0] = 32;
  request.box[0] = 8;
  request.box[1] = 4;
  Parameters p{};
  EXPECT_TRUE(bench.workbench().encode(request, &p.map).ok());
  p.out = bench.upload(std::vector<float>(2 * kBoxWords * kRanks));
  const Status status = bench.run(ptx, p, {32, 1, 1}, {kRanks, 1, 1}, 1024, {kRanks, 1, 1});
  *sentence = status.sentence();
  if (!status.ok()) return {};
  std::vector<int> rows;
  const std::vector<float> got = bench.download<float>(p.out, 2 * kBoxWords * kRanks);
  for (std::size_t box = 0; box < 2 * kRanks; ++box) {
    const float first = got[box * kBoxWords];
    rows.push_back(first == first ? static_cast<int>(first) : -1);
    for (std::size_t i = 0; first == first && i < kBoxWords; ++i) {
      EXPECT_EQ(got[box * kBoxWords + i], first + static_cast<float>(i / 8))
          << "box " << box << ", word " << i;
    }
  }
  return rows;
}

void expect_rows(const std::string& ptx, const std::vector<int>& rows) {
  for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
    std::string sentence;
    EXPECT_EQ(first_rows(ptx, completion, &sentence), rows) << "completion " << static_cast<int>(completion);
    EXPECT_EQ(sentence, "");
  }
}

// Rank 0 loads for ranks 0, 1 and 3, rank 3 for 1 and 2; each destination counts its own bytes.
TEST(Multicast, GoesToTheRanksOfTheMask) {
  expect_rows(kernel(R"(
mov.b16 %mask, 11;
mov.u32 %y, 4;
@%r0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%map, {%zero, %y}], [%m], %mask;
mov.b16 %mask, 6;
mov.u32 %y, 8;
@%r3 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%s+128], [%map, {%zero, %y}], [%m], %mask;
mov.u32 %expected, 128;
setp.eq.u32 %p, %rank, 1;
selp.u32 %expected, 256, %expected, %p;
)"),
              {4, -1, 4, 8, -1, 8, 4, -1});
}

// With cta_group::2 and an even CTA's mbarrier the bytes of both CTAs of a pair are counted in the even one;
// an odd CTA names the even one's mbarrier by clearing a bit of its own address.
TEST(Multicast, SignalsOneCtaOfEachPair) {
  expect_rows(kernel(R"(
and.b32 %leader, %m, 0xfeffffff;
mov.b16 %mask, 15;
mov.u32 %y, 4;
@%r0 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%s], [%map, {%zero, %y}], [%leader], %mask;
mov.u32 %y, 12;
@%r3 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [%s+128], [%map, {%zero, %y}], [%leader];
mov.u32 %expected, 0;
setp.eq.u32 %p, %rank, 0;
selp.u32 %expected, 256, %expected, %p;
setp.eq.u32 %p, %rank, 2;
selp.u32 %expected, 384, %expected, %p;
)"),
              {4, -1, 4, -1, 4, -1, 4, 12});
}

TEST(Multicast, SignalOutsideOfThePair) {
  std::string sentence;
  first_rows(kernel(R"(
mov.u32 %expected, 0;
mov.u32 %y, 4;
mapa.shared::cluster.u32 %leader, %m, 0;
@%r3 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, {%zero, %y}], [%leader];
)"),
             Completion::kEager, &sentence);
  EXPECT_NE(sentence.find(
                "the data goes to rank 3 of the cluster and the mbarrier is in rank 0; both must be in one "
                "pair of CTAs"),
            std::string::npos)
      << sentence;
}

}  // namespace
}  // namespace flashback::emulator::testing
