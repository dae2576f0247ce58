// The Hopper forward kernel, run by the emulator from its PTX, whenever asynchronous work takes effect; and
// single defects, which the comparison or the emulator must notice.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/workbench.h"
#include "kernels/sm90/forward/config.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {
namespace {

namespace forward = sm90::forward;
constexpr forward::Config kConfig = {64, shared::Dtype::kBf16, shared::Mask::kDense};

struct ForwardDefect {
  std::function<void(std::string& ptx)> ptx;
  std::function<void(forward::Parameters&)> parameters;
  Status status;  // what the launch said
};

struct Outputs {
  std::vector<std::uint16_t> out;
  std::vector<float> lse;

  bool operator==(const Outputs&) const = default;
};

// On a grid of `ctas`, heads in sections of `section`.
Outputs run_forward(Workbench& bench, const Shape& s, const Inputs& in, int ctas, int section,
                    ForwardDefect* defect = nullptr) {
  const Buffer q(bench, in.q), k(bench, in.k), v(bench, in.v),
      next_ticket(bench, std::vector<std::int32_t>{0}), out(bench, in.q.size() * 2),
      lse(bench, in.lse.size() * 4);
  const auto side = [](int rows, int tile, int batch) {
    const int tiles = shared::tiles_of(rows, tile);
    return shared::Side{nullptr, nullptr, nullptr, rows, tiles, batch * tiles};
  };
  forward::Parameters p = {};
  encode(bench, q.address(), s.q_rows, s, 64, Swizzle::k128, &p.q, kConfig.query_rows(), 5);
  encode(bench, k.address(), s.k_rows, s, 64, Swizzle::k128, &p.k, forward::kKeyRows, 5);
  encode(bench, v.address(), s.k_rows, s, 64, Swizzle::k128, &p.v, forward::kKeyRows, 5);
  p.out = {out.pointer<void>(), std::int64_t{s.q_rows} * s.heads * 64, std::int64_t{s.heads} * 64, 64};
  p.lse = {lse.pointer<float>(), std::int64_t{s.heads} * s.q_rows, s.q_rows};
  p.next_ticket = next_ticket.pointer<std::int32_t>();
  p.scale_log2 = static_cast<float>(in.scale * 1.4426950408889634);
  p.heads = s.heads;
  p.group = 1;
  p.head_dim = 64;
  p.section = section;
  p.sequences = {.q = side(s.q_rows, kConfig.query_rows(), s.batch),
                 .k = side(s.k_rows, forward::kKeyRows, s.batch),
                 .batch = s.batch,
                 .left = shared::kUnbounded,
                 .right = s.causal ? 0 : shared::kUnbounded};
  KernelImage image = *find_image("sm90_forward");
  std::string ptx = text_of(image);
  if (defect && defect->parameters) defect->parameters(p);
  if (defect && defect->ptx) defect->ptx(ptx);
  image.ptx = ptx;
  const Status status =
      launch(bench, image, s.causal ? "forward_sm90_d64_bf16_causal" : "forward_sm90_d64_bf16_dense",
             {std::uint32_t(ctas), 1, 1}, kConfig.threads(), forward::shared_bytes(64), p);
  if (defect) {
    defect->status = status;
  } else {
    EXPECT_TRUE(status.ok()) << status.sentence();
  }
  EXPECT_EQ(q.read<std::uint16_t>(), in.q);
  EXPECT_EQ(k.read<std::uint16_t>(), in.k);
  return {out.read<std::uint16_t>(), lse.read<float>()};
}

// O in double precision; with `narrow` the weights and O are rounded to bf16.
std::vector<double> reference_out(const Shape& s, const Inputs& in, bool narrow) {
  const auto round = [&](double x) { return narrow ? from_bf16(to_bf16(x)) : x; };
  std::vector<double> out(s.q_size());
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      for (int row = 0; row < s.q_rows; ++row) {
        double lse;
        const std::vector<double> p = softmax_row(s, in, b, h, row, &lse);
        for (int key = 0; key < s.k_rows; ++key) {
          for (int d = 0; d < 64; ++d)
            out[s.q_at(b, h, row) + d] += round(p[key]) * from_bf16(in.v[s.k_at(b, h, key) + d]);
        }
      }
    }
  }
  for (double& x : out) x = round(x);
  return out;
}

struct Judge {
  const Inputs& in;
  std::vector<double> exact, narrowed;

  Judge(const Shape& s, const Inputs& inputs)
      : in(inputs), exact(reference_out(s, inputs, false)), narrowed(reference_out(s, inputs, true)) {}

  ::testing::AssertionResult right(const Outputs& got) const {
    for (std::size_t i = 0; i < got.lse.size(); ++i) {
      if (!(std::abs(got.lse[i] - in.lse[i]) <= 1e-5))
        return ::testing::AssertionFailure()
               << "lse " << i << " is " << got.lse[i] << ", exact " << in.lse[i];
    }
    return close(got.out, exact, narrowed);
  }
};

std::unique_ptr<Workbench> bench_of(emulator::Completion completion, std::uint64_t seed = 0) {
  emulator::MachineOptions options;
  options.arch = Arch::kSm90;
  options.schedule.completion = completion;
  options.schedule.seed = seed;
  return emulator::make_workbench(options);
}

class ForwardSm90Emulated : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Causal, ForwardSm90Emulated, ::testing::Bool());

TEST_P(ForwardSm90Emulated, IsRightWheneverWorkTakesEffect) {
  const Shape s = {1, 3, 400, 700, GetParam()};
  const Inputs in = make_inputs(s, 1);
  const Judge judge(s, in);
  const Outputs first = run_forward(*bench_of(emulator::Completion::kEager), s, in, 4, 1);
  EXPECT_TRUE(judge.right(first));
  EXPECT_EQ(run_forward(*bench_of(emulator::Completion::kLazy), s, in, 4, 1), first);
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    EXPECT_EQ(run_forward(*bench_of(emulator::Completion::kRandom, seed), s, in, 4, 1), first) << seed;
}

// One CTA that does everything, as many as items, more than items; sections that leave a rest.
TEST_P(ForwardSm90Emulated, AnyGridAndSectionDoTheSame) {
  const Shape s = {2, 3, 200, 257, GetParam()};
  const Inputs in = make_inputs(s, 2);
  const auto bench = bench_of(emulator::Completion::kEager);
  const Outputs first = run_forward(*bench, s, in, 12, 1);
  EXPECT_TRUE(Judge(s, in).right(first));
  for (const auto& [ctas, section] : {std::pair{1, 1}, {1, 4}, {5, 6}, {12, 4}, {20, 2}})
    EXPECT_EQ(run_forward(*bench, s, in, ctas, section), first) << ctas << " CTAs, sections of " << section;
}

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

class ForwardSm90Defect : public ::testing::Test {
 protected:
  bool noticed(ForwardDefect defect) {
    for (const auto completion :
         {emulator::Completion::kEager, emulator::Completion::kLazy, emulator::Completion::kRandom}) {
      const Outputs got = run_forward(*bench_of(completion, 1), shape_, in_, 2, 1, &defect);
      if (!defect.status.ok() || !judge_.right(got)) return true;
    }
    return false;
  }
  bool noticed_in(const std::function<void(std::string&)>& ptx) { return noticed({ptx, {}, {}}); }

  const Shape shape_ = {1, 1, 500, 1300, false};
  const Inputs in_ = make_inputs(shape_, 3);
  const Judge judge_{shape_, in_};
};

TEST_F(ForwardSm90Defect, NoneIsNotNoticed) {
  EXPECT_FALSE(noticed({}));
}

TEST_F(ForwardSm90Defect, AnOperandThatIsNotTransposed) {
  EXPECT_TRUE(noticed_in(replace("accumulate, 1, 1, 1;", "accumulate, 1, 1, 0;")));
}

TEST_F(ForwardSm90Defect, AProductThatIsNotWaitedFor) {
  EXPECT_TRUE(noticed_in(replace("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;")));
  EXPECT_TRUE(noticed_in(replace("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 2;")));
}

TEST_F(ForwardSm90Defect, ARowMaximumOfOneThreadOnly) {
  EXPECT_TRUE(noticed_in(replace("shfl.sync.bfly.b32", "shfl.sync.idx.b32")));
}

TEST_F(ForwardSm90Defect, ATicketCounterThatDoesNotStartAtZero) {
  EXPECT_TRUE(noticed({{}, [](forward::Parameters& p) { *p.next_ticket = 1; }, {}}));
}

}  // namespace
}  // namespace flashback::testing
