// What an observer is told, as a log of lines, of texts that use one thing each.
#include <gtest/gtest.h>

#include "emulator/machine/cta.h"
#include "emulator/machine/observer.h"
#include "tests/emulator/machine/ptx_bench.h"

namespace flashback::emulator::testing {
namespace {

const char* word(Use use) {
  return use == Use::kRead ? "reads" : use == Use::kWrite ? "writes" : "changes";
}

// Addresses are offsets from the start of shared memory, or from `base` in global memory.
class Log : public Observer {
 public:
  Address base = 0;
  std::vector<std::string> lines;

  void launch_began(const Program& program) override { program_ = &program; }
  void launch_ended() override { lines.push_back("end"); }
  void warp_ended(const Warp& warp) override { add("warp {} ends", warp.index()); }
  void stuck(const Cta&) override { add("stuck"); }
  // Only what other events do not say.
  void executed(const Warp& warp, const Step& step, LaneMask mask) override {
    const std::string& form = program_->forms[step.form];
    for (const char* of_interest : {"fence", "tcgen05.wait", "tcgen05.fence", "cp.async.bulk.commit",
                                    "cp.async.bulk.wait", "wgmma.commit", "wgmma.wait", "bar.warp"}) {
      if (form.starts_with(of_interest)) add("warp {} {:x} {}", warp.index(), mask, form);
    }
  }
  void accessed(const Warp& warp, const Step&, const LaneAccess& access) override {
    const int first = std::countr_zero(access.lanes);
    add("warp {} {:x} {} {} of {}", warp.index(), access.lanes, word(access.use), access.bytes,
        place(access.owner, access.addresses[first]));
  }
  void issued(const Operation& o) override {
    const char* kinds[] = {"bulk load", "bulk store", "bulk reduce",  "copy",        "copy arrival",
                           "product",   "commit",     "warp product", "tensor load", "tensor store"};
    add("#{} {} of {} bytes by warp {} {:x}{}", o.number, kinds[static_cast<int>(o.kind)], o.bytes,
        o.warp->index(), o.lanes,
        o.mbarrier_owner == nullptr ? "" : " tells " + place(o.mbarrier_owner, o.mbarrier));
  }
  void accessed(const OperationAccess& access) override {
    std::uint64_t sum = 0;
    for (const ByteRange& range : access.ranges) sum += range.bytes;
    add("#{} {} {} of {}", access.operation, word(access.use), sum,
        place(access.owner, access.ranges.front().begin));
  }
  void accessed(const ColumnAccess& a) override {
    add("#{} {} columns {}+{} lanes {:x} {:x} {:x} {:x}", a.operation, word(a.use), a.first, a.columns,
        a.lanes[0], a.lanes[1], a.lanes[2], a.lanes[3]);
  }
  void ended(std::uint64_t operation) override { add("#{} ends", operation); }
  void mbarrier(const MbarrierEvent& e) override {
    const char* kinds[] = {"init", "invalidate", "expect", "complete", "increment", "arrive", "wait"};
    const std::string who = e.operation != 0 ? fmt::format("#{}", e.operation)
                                             : fmt::format("warp {} {:x}", e.warp->index(), e.lanes);
    add("{} {} {} at {}{}", who, kinds[static_cast<int>(e.kind)],
        e.kind == MbarrierEvent::Kind::kWait ? e.parity : e.amount, place(e.owner, e.address),
        e.ends_phase ? ", phase over" : "");
  }
  void barrier_joined(const Warp& warp, const Step&, std::uint32_t id, std::uint32_t threads,
                      std::uint32_t generation) override {
    add("warp {} joins {} of {} generation {}", warp.index(), id, threads, generation);
  }
  void barrier_passed(const Warp& warp, const Step&, std::uint32_t id, std::uint32_t generation) override {
    add("warp {} passes {} generation {}", warp.index(), id, generation);
  }
  void columns_allocated(const Warp&, const Step&, std::uint32_t first, std::uint32_t columns) override {
    add("allocates {}+{}", first, columns);
  }
  void columns_released(const Warp&, const Step&, std::uint32_t first, std::uint32_t columns) override {
    add("releases {}+{}", first, columns);
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... arguments) {
    lines.push_back(fmt::format(format, std::forward<T>(arguments)...));
  }
  std::string place(const Cta* owner, std::uint64_t address) const {
    return owner != nullptr ? fmt::format("s{}", address - kSharedBase) : fmt::format("g{}", address - base);
  }

  const Program* program_ = nullptr;
};

// The log of a run. The text's parameter is a buffer of 256 bytes, whose address is in %g; %s is the start of
// shared memory; %t the thread.
std::vector<std::string> log_of(const std::string& body, Completion completion, std::uint32_t threads = 32,
                                const char* expected_failure = nullptr) {
  Log log;
  MachineOptions options;
  options.schedule.completion = completion;
  options.observer = &log;
  PtxBench bench(options);
  log.base = bench.upload(std::vector<std::byte>(256));
  const std::string ptx = module_of(8, R"(
.reg .b64 %g;
.reg .b32 %s, %t, %r<8>;
.reg .pred %p, %first;
ld.param.u64 %g, [p];
mov.u32 %s, dynamic;
mov.u32 %t, %tid.x;
setp.eq.u32 %first, %t, 0;
)" + body);
  const Status status = bench.run(ptx, log.base, {threads, 1, 1}, {1, 1, 1}, 4096);
  EXPECT_EQ(status.ok(), expected_failure == nullptr) << status.sentence();
  if (expected_failure != nullptr) {
    EXPECT_NE(status.sentence().find(expected_failure), std::string::npos) << status.sentence();
  }
  return log.lines;
}

using Lines = std::vector<std::string>;

TEST(Observer, IsToldOfLoadsStoresAndAtomics) {
  const Lines lines = log_of(R"(
@%first st.global.u32 [%g+8], %t;
ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%g+16];
atom.shared.add.u32 %r1, [%s+4], 1;
bar.warp.sync 0xffffffff;
)",
                             Completion::kEager);
  EXPECT_EQ(lines, (Lines{"warp 0 1 writes 4 of g8", "warp 0 ffffffff reads 16 of g16",
                          "warp 0 ffffffff changes 4 of s4", "warp 0 ffffffff bar.warp.sync", "warp 0 ends",
                          "end"}));
}

// Asynchronous work is told in the order issue, access, end, mbarrier, under each policy.
TEST(Observer, IsToldOfABulkLoadAndItsMbarrier) {
  const std::string body = R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
@!%first bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%s], 64;
add.u32 %r1, %s, 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%g], 64, [%s];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
)";
  const Lines begin = {"warp 0 1 init 1 at s0", "warp 0 1 expect 64 at s0", "warp 0 1 arrive 1 at s0",
                       "#1 bulk load of 64 bytes by warp 0 1 tells s0"};
  const Lines effect = {"#1 writes 64 of s128", "#1 reads 64 of g0", "#1 ends",
                        "#1 complete 64 at s0, phase over"};
  for (const Completion completion : {Completion::kEager, Completion::kLazy}) {
    Lines expected = begin;
    expected.insert(expected.end(), effect.begin(), effect.end());
    for (const char* line : {"warp 0 ffffffff wait 0 at s0", "warp 0 ends", "end"}) expected.push_back(line);
    EXPECT_EQ(log_of(body, completion), expected);
  }
}

TEST(Observer, IsToldOfABulkStoreAndItsGroup) {
  const Lines lines = log_of(R"(
@!%first bra END;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%g+32], [%s], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END:
)",
                             Completion::kLazy);
  EXPECT_EQ(lines, (Lines{"#1 bulk reduce of 16 bytes by warp 0 1", "warp 0 1 cp.async.bulk.commit_group",
                          "#1 reads 16 of s0", "#1 changes 16 of g32", "#1 ends",
                          "warp 0 1 cp.async.bulk.wait_group.read", "warp 0 ends", "end"}));
}

TEST(Observer, IsToldOfElementCopies) {
  const Lines lines = log_of(R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
add.u32 %r1, %s, 64;
@%first cp.async.ca.shared.global [%r1], [%g], 8, 4;
@%first cp.async.mbarrier.arrive.noinc.shared.b64 [%s];
)",
                             Completion::kEager);
  EXPECT_EQ(lines, (Lines{"warp 0 1 init 1 at s0", "#1 copy of 8 bytes by warp 0 1", "#1 writes 8 of s64",
                          "#1 reads 4 of g0", "#1 ends", "#2 copy arrival of 0 bytes by warp 0 1 tells s0",
                          "#2 ends", "#2 arrive 1 at s0, phase over", "warp 0 ends", "end"}));
}

// The end of a tcgen05.ld is the first use of one of its registers, also when the value was there at once.
TEST(Observer, IsToldOfTensorMemory) {
  const std::string body = R"(
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 32;
ld.shared.u32 %r1, [%s];
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1+4], {%t, %t};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1+5];
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r1+4];
fence.proxy.async;
add.u32 %r2, %r2, 1;
tcgen05.wait::ld.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
)";
  const Lines expected = {"warp 0 ffffffff writes 4 of s0",
                          "allocates 0+32",
                          "warp 0 ffffffff reads 4 of s0",
                          "#1 tensor store of 0 bytes by warp 0 ffffffff",
                          "#1 writes columns 4+2 lanes ffffffff 0 0 0",
                          "#1 ends",
                          "warp 0 ffffffff tcgen05.wait::st.sync.aligned",
                          "#2 tensor load of 0 bytes by warp 0 ffffffff",
                          "#2 reads columns 5+1 lanes ffffffff 0 0 0",
                          "#3 tensor load of 0 bytes by warp 0 ffffffff",
                          "#3 reads columns 4+1 lanes ffffffff 0 0 0",
                          "warp 0 ffffffff fence.proxy.async",
                          "#2 ends",
                          "#3 ends",
                          "warp 0 ffffffff tcgen05.wait::ld.sync.aligned",
                          "releases 0+32",
                          "warp 0 ends",
                          "end"};
  EXPECT_EQ(log_of(body, Completion::kEager), expected);
  EXPECT_EQ(log_of(body, Completion::kLazy), expected);
}

// M = 64, N = 8, both operands K-major without swizzle: rows of 16 bytes, eight in a core matrix.
TEST(Observer, IsToldOfAProductAndItsCommit) {
  const Lines lines = log_of(R"(
.reg .b64 %a, %b;
.reg .b32 %d;
@%first mbarrier.init.shared::cta.b64 [%s+4088], 1;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+4080], 32;
ld.shared.u32 %r1, [%s+4080];
cvt.u64.u32 %a, %s;
shr.u64 %a, %a, 4;
or.b64 %a, %a, 0x0000400800400000;
mov.b64 %b, %a;
mov.b32 %d, 0x04020490;
setp.ne.u32 %p, 0, 0;
@!%first bra END;
tcgen05.mma.cta_group::1.kind::f16 [%r1], %a, %b, %d, %p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%s+4088];
END:
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
)",
                             Completion::kEager);
  const Lines middle(lines.begin() + 4, lines.end() - 3);
  EXPECT_EQ(middle, (Lines{"#1 product of 0 bytes by warp 0 1", "#1 reads 2048 of s0", "#1 reads 256 of s0",
                           "#1 writes columns 0+8 lanes ffff ffff ffff ffff", "#1 ends",
                           "#2 commit of 0 bytes by warp 0 1 tells s4088", "#2 ends",
                           "#2 arrive 1 at s4088, phase over"}));
}

TEST(Observer, IsToldOfNamedBarriers) {
  const Lines lines = log_of(R"(
setp.ge.u32 %p, %t, 32;
@%p bra SECOND;
bar.arrive 3, 64;
bra.uni END;
SECOND:
bar.sync 3, 64;
END:
)",
                             Completion::kEager, 64);
  EXPECT_EQ(lines,
            (Lines{"warp 0 joins 3 of 64 generation 0", "warp 0 ends", "warp 1 joins 3 of 64 generation 0",
                   "warp 1 passes 3 generation 0", "warp 1 ends", "end"}));
}

TEST(Observer, IsToldThatNobodyCanGoOn) {
  const Lines lines = log_of(R"(
@%first mbarrier.init.shared::cta.b64 [%s], 1;
mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
)",
                             Completion::kEager, 32, "deadlock");
  EXPECT_EQ(lines, (Lines{"warp 0 1 init 1 at s0", "stuck", "end"}));
}

}  // namespace
}  // namespace flashback::emulator::testing
