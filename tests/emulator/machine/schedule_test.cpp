// What may depend on the schedule does, and nothing else: host threads, seeds, completion orders, CTAs that
// wait for each other.
#include <gtest/gtest.h>

#include <cmath>

#include "emulator/machine/observer.h"
#include "tests/emulator/machine/kernel_of_sums.h"
#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

// Some CTAs come late.
const std::string kSums = kernel_of_sums(R"(
and.b32 %delay, %cta, 7;
mul.lo.u32 %i, %delay, 500;
)");

std::vector<float> sums(const MachineOptions& options) {
  PtxBench bench(options);
  const Address sum = bench.upload(std::vector<float>(16));
  const Status status = bench.run(kSums, sum, {32, 1, 1}, {200, 1, 1}, 1024);
  EXPECT_TRUE(status.ok()) << status.sentence();
  return bench.download<float>(sum, 16);
}

float sum_in_order() {
  float sum = 0;
  for (int cta = 0; cta < 200; ++cta) sum += 1.0f / static_cast<float>(1 + cta);
  return sum;
}

TEST(Reductions, TakeEffectInStartOrderWhateverTheThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const Completion completion : {Completion::kEager, Completion::kLazy, Completion::kRandom}) {
      EXPECT_EQ(sums(with(completion, 5, threads)), std::vector<float>(16, sum_in_order()))
          << threads << " threads, completion " << static_cast<int>(completion);
    }
  }
}

TEST(Reductions, ShuffledCtasGiveAnotherSumThatTheSeedFixes) {
  MachineOptions options = with(Completion::kEager, 1, 4);
  options.schedule.shuffle_ctas = true;
  const std::vector<float> first = sums(options);
  options.threads = 1;
  EXPECT_EQ(sums(options), first);
  EXPECT_NE(first[0], sum_in_order());
  EXPECT_NEAR(first[0], sum_in_order(), 1e-5);
  options.schedule.seed = 2;
  EXPECT_NE(sums(options), first);
}

// A CTA that reads what it has added itself sees it, also when its turn has not come.
TEST(Reductions, AreSeenByTheirOwnCta) {
  const std::string ptx = module_of(8, R"(
.reg .b32 %s, %t, %i, %v, %cta;
.reg .b64 %out, %at;
.reg .pred %p;
ld.param.u64 %out, [p];
mov.u32 %cta, %ctaid.x;
mul.wide.u32 %at, %cta, 32;
add.s64 %out, %out, %at;
mov.u32 %s, dynamic;
mov.u32 %t, %tid.x;
setp.ne.u32 %p, %t, 0;
@%p exit;
setp.ne.u32 %p, %cta, 0;
@%p bra ADD;
mov.u32 %i, 1000000;
SPIN:
add.u32 %i, %i, -1;
setp.ne.u32 %p, %i, 0;
@%p bra SPIN;
ADD:
st.shared.v4.b32 [%s], {0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000};
fence.proxy.async.shared::cta;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%out], [%s], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ld.global.b32 %v, [%out];
st.global.b32 [%out+16], %v;
)");
  PtxBench bench(with(Completion::kEager, 0, 4));
  const Address out = bench.upload(std::vector<float>(8 * 32, 2));
  ASSERT_TRUE(bench.run(ptx, out, {32, 1, 1}, {32, 1, 1}, 64).ok());
  const std::vector<float> got = bench.download<float>(out, 8 * 32);
  for (std::size_t cta = 0; cta < 32; ++cta) EXPECT_EQ(got[8 * cta + 4], 3) << "CTA " << cta;
}

// CTA n waits for the flag of CTA n + 1: all resident ones must be under way.
const std::string kChain = module_of(8, R"(
.reg .b32 %t, %cta, %last, %v;
.reg .b64 %flags, %at;
.reg .pred %p;
ld.param.u64 %flags, [p];
mov.u32 %t, %tid.x;
setp.ne.u32 %p, %t, 0;
@%p exit;
mov.u32 %cta, %ctaid.x;
mov.u32 %last, %nctaid.x;
sub.u32 %last, %last, 1;
mul.wide.u32 %at, %cta, 4;
add.s64 %at, %at, %flags;
setp.eq.u32 %p, %cta, %last;
@%p bra SIGNAL;
WAIT:
ld.acquire.gpu.global.u32 %v, [%at+4];
setp.eq.u32 %p, %v, 0;
@%p bra WAIT;
SIGNAL:
st.release.gpu.global.u32 [%at], 1;
)");

TEST(Ctas, ThatWaitForEachOtherAreResidentTogether) {
  for (const Completion completion : {Completion::kEager, Completion::kRandom}) {
    PtxBench bench(with(completion, 3, 2));
    const Address flags = bench.upload(std::vector<std::uint32_t>(148));
    const Status status = bench.run(kChain, flags, {32, 1, 1}, {148, 1, 1});
    ASSERT_TRUE(status.ok()) << status.sentence();
    EXPECT_EQ(bench.download<std::uint32_t>(flags, 148), std::vector<std::uint32_t>(148, 1));
  }
}

// A store to tensor memory that is read back: `wait` stands between. Without it, only an eager machine shows
// the value.
std::string store_then_load(const char* wait) {
  return module_of(8, fmt::format(R"(
.reg .b32 %m, %t, %v, %w;
.reg .b64 %out, %at;
ld.param.u64 %out, [p];
mov.u32 %m, dynamic;
mov.u32 %t, %tid.x;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%m], 32;
add.u32 %v, %t, 1;
tcgen05.st.sync.aligned.32x32b.x1.b32 [0], {{%v}};
{}
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%w}}, [0];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %at, %t, 4;
add.s64 %at, %at, %out;
st.global.b32 [%at], %w;
tcgen05.wait::st.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 32;
)",
                                  wait));
}

std::uint32_t first_word(const std::string& ptx, Completion completion) {
  PtxBench bench(with(completion));
  const Address out = bench.upload(std::vector<std::uint32_t>(32));
  const Status status = bench.run(ptx, out, {32, 1, 1}, {1, 1, 1}, 64);
  EXPECT_TRUE(status.ok()) << status.sentence();
  return bench.download<std::uint32_t>(out, 1)[0];
}

TEST(Completion, LateStoresShowAMissingWait) {
  const std::string right = store_then_load("tcgen05.wait::st.sync.aligned;"), wrong = store_then_load("");
  EXPECT_EQ(first_word(right, Completion::kEager), 1u);
  EXPECT_EQ(first_word(right, Completion::kLazy), 1u);
  EXPECT_EQ(first_word(wrong, Completion::kEager), 1u);
  EXPECT_EQ(first_word(wrong, Completion::kLazy), 0xffffffffu);
}

// A bulk load that is read with or without waiting for its mbarrier.
std::string load_then_read(const char* wait) {
  return module_of(16, fmt::format(R"(
.reg .b32 %m, %s, %t, %v;
.reg .b64 %from, %out;
.reg .pred %p;
ld.param.u64 %from, [p];
ld.param.u64 %out, [p+8];
mov.u32 %m, dynamic;
add.u32 %s, %m, 128;
mov.u32 %t, %tid.x;
setp.ne.u32 %p, %t, 0;
@%p exit;
mbarrier.init.shared::cta.b64 [%m], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%from], 16, [%m];
{}
ld.shared.b32 %v, [%s];
st.global.b32 [%out], %v;
)",
                                   wait));
}

TEST(Completion, LateLoadsShowAMissingWait) {
  const auto word = [](const char* wait, Completion completion) {
    PtxBench bench(with(completion));
    struct {
      Address from, out;
    } p{bench.upload(std::vector<std::uint32_t>(4, 77)), bench.upload(std::vector<std::uint32_t>(1))};
    const Status status = bench.run(load_then_read(wait), p, {32, 1, 1}, {1, 1, 1}, 256);
    EXPECT_TRUE(status.ok()) << status.sentence();
    return bench.download<std::uint32_t>(p.out, 1)[0];
  };
  const char* wait = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 0;\n@!%p bra WAIT;";
  EXPECT_EQ(word(wait, Completion::kEager), 77u);
  EXPECT_EQ(word(wait, Completion::kLazy), 77u);
  EXPECT_EQ(word("", Completion::kEager), 77u);
  EXPECT_EQ(word("", Completion::kLazy), 0xffffffffu);
}

// Warp 0 loads and never has to wait when copies take effect at once; the other warps wait for every phase
// of the same mbarrier and have no say in when the next begins. On a GPU a load takes hundreds of cycles.
TEST(Warps, GiveWayToThoseThatWaitForTheSamePhase) {
  const std::string ptx = module_of(16, R"(
.reg .b32 %m, %s, %t, %i, %parity, %v, %sum;
.reg .b64 %from, %out, %at;
.reg .pred %p, %loads;
ld.param.u64 %from, [p];
ld.param.u64 %out, [p+8];
mov.u32 %m, dynamic;
add.u32 %s, %m, 128;
mov.u32 %t, %tid.x;
setp.eq.u32 %loads, %t, 0;
@%loads mbarrier.init.shared::cta.b64 [%m], 1;
bar.sync 0;
mov.u32 %i, 0;
mov.u32 %sum, 0;
NEXT:
@!%loads bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%m], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%from], 16, [%m];
WAIT:
and.b32 %parity, %i, 1;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], %parity;
@!%p bra AGAIN;
ld.shared.b32 %v, [%s];
add.u32 %sum, %sum, %v;
add.u64 %from, %from, 16;
add.u32 %s, %s, 16;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 5;
@%p bra NEXT;
mul.wide.u32 %at, %t, 4;
add.s64 %at, %at, %out;
st.global.b32 [%at], %sum;
)");
  for (const Completion completion : {Completion::kEager, Completion::kLazy}) {
    PtxBench bench(with(completion));
    struct {
      Address from, out;
    } p{bench.upload(
            std::vector<std::uint32_t>{1, 0, 0, 0, 20, 0, 0, 0, 300, 0, 0, 0, 4000, 0, 0, 0, 50000, 0, 0, 0}),
        bench.upload(std::vector<std::uint32_t>(128))};
    const Status status = bench.run(ptx, p, {128, 1, 1}, {1, 1, 1}, 256);
    ASSERT_TRUE(status.ok()) << status.sentence();
    EXPECT_EQ(bench.download<std::uint32_t>(p.out, 128), std::vector<std::uint32_t>(128, 54321));
  }
}

// Registers move between warpgroups: 256 threads of 128, then 24 and 232; the second group waits for the
// first.
std::string registers(int first, int second, const char* directives = ".maxntid 256") {
  return module_of(8,
                   fmt::format(R"(
.reg .b32 %t;
.reg .pred %p;
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 128;
@%p bra HIGH;
setmaxnreg.dec.sync.aligned.u32 {};
bra.uni END;
HIGH:
setmaxnreg.inc.sync.aligned.u32 {};
END:
)",
                               first, second),
                   directives);
}

std::string sentence(const std::string& ptx) {
  PtxBench bench(with(Completion::kEager));
  return bench.run(ptx, Address{0}, {256, 1, 1}).sentence();
}

TEST(Registers, MoveBetweenWarpgroups) {
  EXPECT_EQ(sentence(registers(24, 256)), "") << "256 registers at launch";
  EXPECT_NE(sentence(registers(20, 256)).find("24 to 256 in steps of 8"), std::string::npos);
  EXPECT_NE(sentence(registers(24, 256, "")).find("neither .maxntid"), std::string::npos);
  const std::string halves = ".maxntid 512";  // 128 registers at launch
  EXPECT_EQ(sentence(registers(24, 232, halves.c_str())), "");
  EXPECT_NE(sentence(registers(32, 232, halves.c_str())).find("waits for 232 registers a thread"),
            std::string::npos);
  EXPECT_NE(sentence(registers(136, 128, halves.c_str()))
                .find("setmaxnreg.dec to 136 registers by a warp that holds 128"),
            std::string::npos);
}

// Warp 0 gives 104 registers a thread back, its warpgroup's others 88: 368, of which the other group takes
// 352.
TEST(Registers, EachWarpHasItsOwnNumber) {
  const auto ptx = [](int wanted) {
    return module_of(8,
                     fmt::format(R"(
.reg .b32 %t;
.reg .pred %p;
mov.u32 %t, %tid.x;
setp.ge.u32 %p, %t, 256;
@%p bra END;
setp.ge.u32 %p, %t, 128;
@%p bra SECOND;
setp.lt.u32 %p, %t, 32;
@%p bra FIRST;
setmaxnreg.dec.sync.aligned.u32 40;
bra.uni END;
FIRST:
setmaxnreg.dec.sync.aligned.u32 24;
bra.uni END;
SECOND:
setmaxnreg.inc.sync.aligned.u32 {};
END:
)",
                                 wanted),
                     ".maxntid 512");
  };
  PtxBench bench(with(Completion::kEager));
  EXPECT_EQ(bench.run(ptx(216), Address{0}, {512, 1, 1}).sentence(), "");
  const Status status = bench.run(ptx(224), Address{0}, {512, 1, 1});
  EXPECT_NE(status.sentence().find("waits for 224 registers a thread"), std::string::npos)
      << status.sentence();
}

// An observer sees each executed instruction once, waits when they succeed.
TEST(Observers, SeeWhatWasExecuted) {
  class Counter : public Observer {
   public:
    void launch_began(const Program& program) override { program_ = &program; }
    void executed(const Warp&, const Step& step, LaneMask mask) override {
      const std::string& form = program_->forms[step.form];
      if (form.starts_with("mbarrier.try_wait")) ++waits;
      if (form.starts_with("cp.async.bulk.shared")) lanes |= mask;
    }
    void cta_began(const Cta&) override { ++began; }
    void cta_ended(const Cta&) override { ++ended; }
    int waits = 0, began = 0, ended = 0;
    LaneMask lanes = 0;

   private:
    const Program* program_ = nullptr;
  };
  Counter counter;
  MachineOptions options = with(Completion::kLazy);
  options.observer = &counter;
  PtxBench bench(options);
  struct {
    Address from, out;
  } p{bench.upload(std::vector<std::uint32_t>(4, 77)), bench.upload(std::vector<std::uint32_t>(1))};
  const char* wait = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%m], 0;\n@!%p bra WAIT;";
  ASSERT_TRUE(bench.run(load_then_read(wait), p, {32, 1, 1}, {3, 1, 1}, 256).ok());
  EXPECT_EQ(counter.waits, 3);
  EXPECT_EQ(counter.lanes, 1u);
  EXPECT_EQ(counter.began, 3);
  EXPECT_EQ(counter.ended, 3);
}

// The CTA that started first among those that fail is the one reported, whatever the threads.
TEST(Faults, AreThoseOfTheFirstCta) {
  const std::string ptx = module_of(8, R"(
.reg .b32 %cta, %i;
.reg .pred %p;
mov.u32 %cta, %ctaid.x;
setp.lt.u32 %p, %cta, 5;
@%p exit;
sub.u32 %i, 100, %cta;
mul.lo.u32 %i, %i, 100;
SPIN:
add.u32 %i, %i, -1;
setp.ne.u32 %p, %i, 0;
@%p bra SPIN;
trap;
)");
  for (const int threads : {1, 4}) {
    PtxBench bench(with(Completion::kEager, 0, threads));
    const Status status = bench.run(ptx, Address{0}, {32, 1, 1}, {64, 1, 1});
    EXPECT_EQ(status.code(), Code::kDevice);
    EXPECT_NE(status.sentence().find("CTA (5, 0, 0)"), std::string::npos) << status.sentence();
  }
}

}  // namespace
}  // namespace flashback::emulator::testing
