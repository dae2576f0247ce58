// The Hopper kernels, run by the emulator from their PTX, whenever asynchronous work takes effect.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/workbench.h"
#include "kernels/sm90/backward/config.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {
namespace {

namespace hopper = sm90::backward;

// A deliberate defect of the main kernel's text or arguments; `status` is what its launch said.
struct HopperDefect {
  std::function<void(std::string& ptx)> ptx;
  std::function<void(hopper::Parameters&)> parameters;
  Status status;
};

// On so many clusters of one CTA or of two, key/value heads in sections of `section`.
struct Grid {
  int clusters, section;
  int ctas = 1;  // of a cluster
};

Gradients run_sm90(Workbench& bench, const Shape& s, const Inputs& in, const Grid& grid,
                   HopperDefect* defect = nullptr) {
  const int q_tiles = (s.q_rows + hopper::kQueryRows - 1) / hopper::kQueryRows;
  const std::size_t tiles = std::size_t(s.batch) * s.heads * q_tiles;
  const Buffer q(bench, in.q), k(bench, in.k), v(bench, in.v), out(bench, in.out), dout(bench, in.dout),
      lse(bench, in.lse), stats(bench, tiles * hopper::kStatsFloats * 4),
      dq_accum(bench, tiles * hopper::kDqFloats * 4), next_ticket(bench, 4), dq(bench, in.q.size() * 2),
      dk(bench, in.k.size() * 2), dv(bench, in.k.size() * 2);
  const auto view = [&](const Buffer& buffer) {
    return common::View{buffer.pointer<void>(), std::int64_t{s.q_rows} * s.heads * 64,
                        std::int64_t{s.heads} * 64, 64};
  };
  const KernelImage& image = *find_image("sm90_backward");
  KernelImage main_image = image;
  std::string ptx = text_of(image);

  const auto side = [](int rows, int tile, int batch) {
    const int tiles = shared::tiles_of(rows, tile);
    return shared::Side{nullptr, nullptr, nullptr, rows, tiles, batch * tiles};
  };
  const shared::Sequences sequences = {.q = side(s.q_rows, hopper::kQueryRows, s.batch),
                                       .k = side(s.k_rows, hopper::kKeyRows, s.batch),
                                       .batch = s.batch,
                                       .left = shared::kUnbounded,
                                       .right = s.causal ? 0 : shared::kUnbounded};
  common::PreprocessParameters pre = {};
  pre.out = view(out);
  pre.dout = view(dout);
  pre.lse = {lse.pointer<float>(), std::int64_t{s.heads} * s.q_rows, s.q_rows};
  pre.lse_log2 = stats.pointer<float>();
  pre.delta = stats.pointer<float>() + hopper::kQueryRows;
  pre.dq_accum = dq_accum.pointer<float>();
  pre.zero = next_ticket.pointer<std::int32_t>();
  pre.sequences = sequences;
  pre.head_dim = 64;
  Status status =
      launch(bench, image, "preprocess_sm90_d64_bf16",
             {std::uint32_t(sequences.q.all_tiles), std::uint32_t(s.heads), 1}, common::kThreads, 0, pre);
  EXPECT_TRUE(status.ok()) << status.sentence();

  hopper::Parameters main = {};
  encode(bench, q.address(), s.q_rows, s, 64, Swizzle::k128, &main.q, hopper::kQueryRows, 5);
  encode(bench, dout.address(), s.q_rows, s, 64, Swizzle::k128, &main.dout, hopper::kQueryRows, 5);
  encode(bench, k.address(), s.k_rows, s, 64, Swizzle::k128, &main.k, hopper::kKeyRows, 5);
  encode(bench, v.address(), s.k_rows, s, 64, Swizzle::k128, &main.v, hopper::kKeyRows, 5);
  encode(bench, dk.address(), s.k_rows, s, 64, Swizzle::k128, &main.dk, hopper::kKeyRows, 5);
  encode(bench, dv.address(), s.k_rows, s, 64, Swizzle::k128, &main.dv, hopper::kKeyRows, 5);
  main.stats = stats.pointer<float>();
  main.dq_accum = dq_accum.pointer<float>();
  main.next_ticket = next_ticket.pointer<std::int32_t>();
  main.scale = static_cast<float>(in.scale);
  main.scale_log2 = static_cast<float>(in.scale * 1.4426950408889634);
  main.kv_heads = s.heads;
  main.group = main.parts = main.part_heads = 1;
  main.head_dim = 64;
  main.sequences = sequences;
  main.section = grid.section;
  if (defect && defect->parameters) defect->parameters(main);
  if (defect && defect->ptx) defect->ptx(ptx);
  main_image.ptx = ptx;
  const std::string entry = std::string("backward_sm90_d64_bf16_") + (s.causal ? "causal" : "dense") +
                            (grid.ctas == 2 ? "_pair" : "");
  status =
      launch(bench, main_image, entry, {std::uint32_t(grid.clusters * grid.ctas), 1, 1}, hopper::kThreads,
             hopper::shared_bytes({.ctas = grid.ctas}), main, {std::uint32_t(grid.ctas), 1, 1});
  if (defect) {
    defect->status = status;
  } else {
    EXPECT_TRUE(status.ok()) << status.sentence();
  }

  common::PostprocessParameters post = {};
  post.accum = dq_accum.pointer<float>();
  post.gradient = view(dq);
  post.scale = main.scale;
  post.sequences = sequences;
  post.head_dim = 64;
  status = launch(bench, image, "postprocess_sm90_d64_bf16",
                  {std::uint32_t(s.batch * shared::tiles_of(s.q_rows, common::kPostprocessRows)),
                   std::uint32_t(s.heads), 1},
                  common::kThreads, 0, post);
  EXPECT_TRUE(status.ok()) << status.sentence();

  EXPECT_EQ(q.read<std::uint16_t>(), in.q);
  EXPECT_EQ(k.read<std::uint16_t>(), in.k);
  for (const Buffer* workspace : {&stats, &dq_accum, &next_ticket}) workspace->read<float>();  // its guards
  return {dq.read<std::uint16_t>(), dk.read<std::uint16_t>(), dv.read<std::uint16_t>()};
}

std::unique_ptr<Workbench> bench_of(emulator::Completion completion, std::uint64_t seed = 0) {
  emulator::MachineOptions options;
  options.arch = Arch::kSm90;
  options.schedule.completion = completion;
  options.schedule.seed = seed;
  return emulator::make_workbench(options);
}

void expect_right(const Gradients& got, const Exact& exact, const Exact& narrowed) {
  EXPECT_TRUE(close(got.dq, exact.dq, narrowed.dq)) << "dq";
  EXPECT_TRUE(close(got.dk, exact.dk, narrowed.dk)) << "dk";
  EXPECT_TRUE(close(got.dv, exact.dv, narrowed.dv)) << "dv";
}

// Causal or not, CTAs of a cluster.
class BackwardSm90Emulated : public ::testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  static bool causal() { return std::get<0>(GetParam()); }
  static Grid grid(int clusters, int section) { return {clusters, section, std::get<1>(GetParam())}; }
};
INSTANTIATE_TEST_SUITE_P(Kernels, BackwardSm90Emulated,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "causal" : "dense") +
                                  (std::get<1>(info.param) == 2 ? "_pair" : "");
                         });

// dK and dV of a tile are summed in one CTA: the same bits in every order. dQ is not.
TEST_P(BackwardSm90Emulated, IsRightWheneverWorkTakesEffect) {
  const Shape s = {1, 3, 200, 300, causal()};
  const Inputs in = make_inputs(s, 1);
  const Exact exact = reference(s, in, false), narrowed = reference(s, in, true);
  const auto eager = bench_of(emulator::Completion::kEager);
  const Gradients first = run_sm90(*eager, s, in, grid(9, 1));
  expect_right(first, exact, narrowed);
  std::vector<std::unique_ptr<Workbench>> others;
  others.push_back(bench_of(emulator::Completion::kLazy));
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    others.push_back(bench_of(emulator::Completion::kRandom, seed));
  }
  for (const auto& bench : others) {
    const Gradients got = run_sm90(*bench, s, in, grid(9, 1));
    expect_right(got, exact, narrowed);
    EXPECT_EQ(got.dk, first.dk);
    EXPECT_EQ(got.dv, first.dv);
  }
}

// One cluster that does everything, as many as items, more than items; sections that leave a rest.
TEST_P(BackwardSm90Emulated, AnyGridAndSectionDoTheSame) {
  const Shape s = {2, 3, 130, 257, causal()};
  const Inputs in = make_inputs(s, 2);
  const Exact exact = reference(s, in, false), narrowed = reference(s, in, true);
  const auto bench = bench_of(emulator::Completion::kEager);
  const Gradients first = run_sm90(*bench, s, in, grid(18, 1));
  for (const auto& [clusters, section] : {std::pair{1, 1}, {1, 4}, {5, 6}, {18, 4}, {25, 2}}) {
    SCOPED_TRACE(::testing::Message() << clusters << " clusters, sections of " << section);
    const Gradients got = run_sm90(*bench, s, in, grid(clusters, section));
    expect_right(got, exact, narrowed);
    EXPECT_EQ(got.dk, first.dk);
    EXPECT_EQ(got.dv, first.dv);
  }
}

// Pairs of whose tiles of keys one is missing, or sees no query; items of an odd number of query tiles, so
// that whose turn a tile is changes from item to item; items without any.
TEST(BackwardSm90Pair, LengthsOfAllKinds) {
  const auto eager = bench_of(emulator::Completion::kEager), lazy = bench_of(emulator::Completion::kLazy);
  for (const bool causal : {false, true}) {
    for (const auto& [q, k] :
         {std::pair{1, 1}, {64, 128}, {63, 129}, {192, 255}, {65, 500}, {500, 65}, {300, 640}, {640, 300}}) {
      SCOPED_TRACE(::testing::Message() << q << " x " << k << (causal ? " causal" : ""));
      const Shape s = {1, 3, q, k, causal};
      const Inputs in = make_inputs(s, 5);
      const Exact exact = reference(s, in, false), narrowed = reference(s, in, true);
      expect_right(run_sm90(*eager, s, in, {2, 2, 2}), exact, narrowed);
      expect_right(run_sm90(*lazy, s, in, {3, 1, 2}), exact, narrowed);
    }
  }
}

// ---- That the comparison can fail: single defects, which it or the emulator itself must notice.

// Replaces `from` in the text wherever it stands.
auto replace(const std::string& from, const std::string& to) {
  return [=](std::string& ptx) {
    int replaced = 0;
    for (std::size_t at = ptx.find(from); at != std::string::npos; at = ptx.find(from, at + to.size())) {
      ptx.replace(at, from.size(), to);
      ++replaced;
    }
    ASSERT_GT(replaced, 0) << '"' << from << "\" does not occur";
  };
}

bool noticed(const Shape& s, const Inputs& in, HopperDefect defect, int ctas = 1) {
  const Exact exact = reference(s, in, false), narrowed = reference(s, in, true);
  for (const auto completion :
       {emulator::Completion::kEager, emulator::Completion::kLazy, emulator::Completion::kRandom}) {
    const Gradients got = run_sm90(*bench_of(completion, 1), s, in, {3, 1, ctas}, &defect);
    if (!defect.status.ok() || !close(got.dq, exact.dq, narrowed.dq) ||
        !close(got.dk, exact.dk, narrowed.dk) || !close(got.dv, exact.dv, narrowed.dv)) {
      return true;
    }
  }
  return false;
}

class BackwardSm90Defect : public ::testing::Test {
 protected:
  bool noticed_in(const std::function<void(std::string&)>& ptx) {
    return noticed(shape_, in_, {ptx, {}, {}});
  }

  const Shape shape_ = {1, 1, 600, 256, false};
  const Inputs in_ = make_inputs(shape_, 3);
};

TEST_F(BackwardSm90Defect, NoneIsNotNoticed) {
  EXPECT_FALSE(noticed(shape_, in_, {}));
}

TEST_F(BackwardSm90Defect, OneBitOfADescriptor) {
  const std::uint64_t right = std::uint64_t{1} << 62 | std::uint64_t{64} << 32 | 1 << 16;
  for (int bit : {38, 62, 63}) {  // stride offset, swizzle
    EXPECT_TRUE(noticed_in(replace(std::to_string(right), std::to_string(right ^ std::uint64_t{1} << bit))))
        << bit;
  }
}

TEST_F(BackwardSm90Defect, AnOperandThatIsNotTransposed) {
  EXPECT_TRUE(noticed_in(replace("accumulate, 1, 1, 1;", "accumulate, 1, 1, 0;")));
  EXPECT_TRUE(noticed_in(replace(".x4.trans.shared.b16", ".x4.shared.b16")));
}

TEST_F(BackwardSm90Defect, AProductThatIsNotWaitedFor) {
  EXPECT_TRUE(noticed_in(replace("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 2;")));
}

TEST_F(BackwardSm90Defect, ARingThatIsOverwrittenBeforeItIsRead) {
  EXPECT_TRUE(noticed_in(replace("cp.async.bulk.wait_group.read 0;", "")));
}

// Of a pair: whose stage of dS is written too early, or whose dQ lacks the peer's keys.
TEST(BackwardSm90PairDefect, IsNoticed) {
  const Shape s = {1, 2, 600, 512, false};
  const Inputs in = make_inputs(s, 6);
  const auto noticed_in = [&](const std::string& from, const std::string& to) {
    return noticed(s, in, {replace(from, to), {}, {}}, 2);
  };
  EXPECT_FALSE(noticed(s, in, {}, 2));
  EXPECT_TRUE(noticed_in("mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [%",
                         "setp.eq.u32 done, 0, 0; //"));
  EXPECT_TRUE(noticed_in("cp.async.bulk.shared::cluster.shared::cta.mbarrier", "//"));
}

TEST_F(BackwardSm90Defect, ATicketCounterThatDoesNotStartAtZero) {
  const Shape s = {1, 3, 64, 256, false};
  EXPECT_TRUE(noticed(s, make_inputs(s, 4), {{}, [](hopper::Parameters& p) { *p.next_ticket = 1; }, {}}));
}

}  // namespace
}  // namespace flashback::testing
