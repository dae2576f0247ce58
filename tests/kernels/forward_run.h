// The main launch of a forward pass on a workbench, everything poisoned beforehand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/workbench.h"
#include "kernels/sm100/forward/config.h"
#include "kernels/sm90/forward/config.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {

// The kernel of an architecture at head dimension 64 in bf16.
struct ForwardKernel {
  std::string arch;
  int query_rows, key_rows, threads;
  std::uint32_t shared_bytes;

  std::string entry(bool causal) const {
    return "forward_" + arch + "_d64_bf16_" + (causal ? "causal" : "dense");
  }
};
inline ForwardKernel forward_kernel(Arch arch) {
  if (arch == Arch::kSm100) {
    using namespace sm100::forward;
    return {"sm100", kQueryRows, kKeyRows, kThreads, sm100::forward::shared_bytes(64)};
  }
  constexpr sm90::forward::Config kConfig = {64, shared::Dtype::kBf16, shared::Mask::kDense};
  return {"sm90", kConfig.query_rows(), sm90::forward::kKeyRows, kConfig.threads(),
          sm90::forward::shared_bytes(64)};
}

struct ForwardDefect {
  std::function<void(std::string& ptx)> ptx;
  std::function<void(common::ForwardParameters&)> parameters;
  Status status;  // what the launch said
};

struct Outputs {
  std::vector<std::uint16_t> out;
  std::vector<float> lse;

  bool operator==(const Outputs&) const = default;
};

// On a grid of `ctas`, heads in sections of `section`.
inline Outputs run_forward(Workbench& bench, const Shape& s, const Inputs& in, int ctas, int section,
                           ForwardDefect* defect = nullptr) {
  const ForwardKernel kernel = forward_kernel(bench.arch());
  const Buffer q(bench, in.q), k(bench, in.k), v(bench, in.v),
      next_ticket(bench, std::vector<std::int32_t>{0}), out(bench, in.q.size() * 2),
      lse(bench, in.lse.size() * 4);
  const auto side = [](int rows, int tile, int batch) {
    const int tiles = shared::tiles_of(rows, tile);
    return shared::Side{nullptr, nullptr, nullptr, rows, tiles, batch * tiles};
  };
  common::ForwardParameters p = {};
  encode(bench, q.address(), s.q_rows, s, 64, Swizzle::k128, &p.q, kernel.query_rows, 5);
  encode(bench, k.address(), s.k_rows, s, 64, Swizzle::k128, &p.k, kernel.key_rows, 5);
  encode(bench, v.address(), s.k_rows, s, 64, Swizzle::k128, &p.v, kernel.key_rows, 5);
  p.out = {out.pointer<void>(), std::int64_t{s.q_rows} * s.heads * 64, std::int64_t{s.heads} * 64, 64};
  p.lse = {lse.pointer<float>(), std::int64_t{s.heads} * s.q_rows, s.q_rows};
  p.next_ticket = next_ticket.pointer<std::int32_t>();
  p.scale_log2 = static_cast<float>(in.scale * 1.4426950408889634);
  p.heads = s.heads;
  p.group = 1;
  p.head_dim = 64;
  p.section = section;
  p.sequences = {.q = side(s.q_rows, kernel.query_rows, s.batch),
                 .k = side(s.k_rows, kernel.key_rows, s.batch),
                 .batch = s.batch,
                 .left = shared::kUnbounded,
                 .right = s.causal ? 0 : shared::kUnbounded};
  KernelImage image = *find_image(kernel.arch + "_forward");
  std::string ptx = text_of(image);
  if (defect && defect->parameters) defect->parameters(p);
  if (defect && defect->ptx) defect->ptx(ptx);
  image.ptx = ptx;
  const Status status = launch(bench, image, kernel.entry(s.causal), {std::uint32_t(ctas), 1, 1},
                               kernel.threads, kernel.shared_bytes, p);
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
inline std::vector<double> reference_out(const Shape& s, const Inputs& in, bool narrow) {
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

// Scores that grow from the last key to the first, in which order kernels see them: again and again a new
// largest one, far above the last.
inline Inputs growing_inputs(const Shape& s, unsigned seed) {
  Inputs in = make_inputs(s, seed);
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      for (int key = 0; key < s.k_rows; ++key) {
        for (int d = 0; d < 64; ++d) {
          std::uint16_t& k = in.k[s.k_at(b, h, key) + d];
          k = to_bf16(from_bf16(k) * (1 + 9.0 * (s.k_rows - 1 - key) / s.k_rows));
        }
      }
      for (int row = 0; row < s.q_rows; ++row) {
        double lse;
        softmax_row(s, in, b, h, row, &lse);
        in.lse[(std::size_t(b) * s.heads + h) * s.q_rows + row] = static_cast<float>(lse);
      }
    }
  }
  return in;
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

inline std::unique_ptr<Workbench> bench_of(Arch arch, emulator::Completion completion, std::uint64_t seed = 0,
                                           emulator::Observer* observer = nullptr) {
  emulator::MachineOptions options;
  options.arch = arch;
  options.schedule.completion = completion;
  options.schedule.seed = seed;
  options.observer = observer;
  return emulator::make_workbench(options);
}

}  // namespace flashback::testing
