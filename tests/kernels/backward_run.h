// The three launches of a backward pass on a workbench, everything poisoned beforehand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kernels/common/parameters.h"
#include "kernels/images.h"
#include "kernels/sm100/backward/config.h"
#include "tests/device/image_text.h"
#include "tests/kernels/backward_case.h"

namespace flashback::testing {

namespace backward = sm100::backward;

// Device memory between two guards. All of it begins as 0xff bytes: NaN in every format.
class Buffer {
 public:
  static constexpr std::size_t kGuard = 4096;

  Buffer(Workbench& bench, std::size_t bytes) : bench_(bench), bytes_(bytes) {
    EXPECT_TRUE(bench.allocate(bytes + 2 * kGuard, &base_).ok());
    const std::vector<std::byte> poison(bytes + 2 * kGuard, std::byte{0xff});
    EXPECT_TRUE(bench.upload(base_, poison, nullptr).ok());
  }
  template <class T>
  Buffer(Workbench& bench, const std::vector<T>& data) : Buffer(bench, data.size() * sizeof(T)) {
    EXPECT_TRUE(bench.upload(address(), std::as_bytes(std::span(data)), nullptr).ok());
  }
  ~Buffer() { bench_.release(base_); }
  Buffer(const Buffer&) = delete;

  Address address() const { return base_ + kGuard; }
  template <class T>
  T* pointer() const {
    return reinterpret_cast<T*>(address());
  }
  template <class T>
  std::vector<T> read() const {
    std::vector<std::byte> all(bytes_ + 2 * kGuard);
    EXPECT_TRUE(bench_.download(all, base_, nullptr).ok());
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(all[i], std::byte{0xff}) << "byte " << kGuard - i << " before the buffer was written";
      EXPECT_EQ(all[kGuard + bytes_ + i], std::byte{0xff}) << "byte " << i << " after the buffer was written";
    }
    std::vector<T> data(bytes_ / sizeof(T));
    std::memcpy(data.data(), all.data() + kGuard, bytes_);
    return data;
  }

 private:
  Workbench& bench_;
  std::size_t bytes_;
  Address base_ = 0;
};

inline void encode(Workbench& bench, Address base, int rows, const Shape& s, std::uint32_t columns,
                   Swizzle swizzle, TensorMapBytes* map, std::uint32_t box_rows = 128, int rank = 4) {
  TensorMapRequest request;
  request.base = base;
  request.swizzle = swizzle;
  request.rank = rank;
  const std::uint64_t dims[] = {64, std::uint64_t(rows), std::uint64_t(s.heads), std::uint64_t(s.batch), 1};
  const std::uint64_t strides[] = {s.heads * 128u, 128, std::uint64_t(rows) * s.heads * 128, s.heads * 128u};
  const std::uint32_t box[] = {columns, box_rows, 1, 1, 1};
  std::copy_n(dims, 5, request.dims);
  std::copy_n(strides, 4, request.strides);
  std::copy_n(box, 5, request.box);
  const Status status = bench.encode(request, map);
  EXPECT_TRUE(status.ok()) << status.sentence();
}

template <class Parameters>
Status launch(Workbench& bench, const KernelImage& image, const std::string& entry, Dim3 grid, int threads,
              int shared_bytes, const Parameters& parameters, Dim3 cluster = {}) {
  Launch launch;
  launch.image = &image;
  launch.entry = entry.c_str();
  launch.grid = grid;
  launch.cluster = cluster;
  launch.block = {std::uint32_t(threads), 1, 1};
  launch.shared_bytes = shared_bytes;
  launch.parameters = std::as_bytes(std::span(&parameters, 1));
  return bench.launch(launch, nullptr);
}

// A deliberate defect of the main kernel's text or arguments; `status` is what its launch said.
struct Defect {
  std::function<void(std::string& ptx)> ptx;
  std::function<void(backward::Parameters&)> parameters;
  Status status;
};

// `variant` is split_warp, aliased_cta, ...
inline Gradients run(Workbench& bench, const Shape& s, const Inputs& in, const std::string& variant,
                     Defect* defect = nullptr) {
  shared::Sequences sequences = {};
  sequences.batch = s.batch;
  sequences.left = shared::kUnbounded;
  sequences.right = s.causal ? 0 : shared::kUnbounded;
  sequences.q.rows = s.q_rows;
  sequences.k.rows = s.k_rows;
  const shared::Sight sight = shared::sight_of(sequences, 0);
  sequences.q.tiles = shared::tiles_of(sight.q.count, 128);
  sequences.k.tiles = shared::tiles_of(sight.k.count, 128);
  sequences.q.all_tiles = s.batch * sequences.q.tiles;
  sequences.k.all_tiles = s.batch * sequences.k.tiles;
  const std::size_t padded_rows = std::size_t(s.heads) * sequences.q.all_tiles * 128;
  const Buffer q(bench, in.q), k(bench, in.k), v(bench, in.v), out(bench, in.out), dout(bench, in.dout),
      lse(bench, in.lse), lse_log2(bench, padded_rows * 4), delta(bench, padded_rows * 4),
      dq_accum(bench, padded_rows * 64 * 4), dq(bench, in.q.size() * 2), dk(bench, in.k.size() * 2),
      dv(bench, in.k.size() * 2);

  const auto view = [&](const Buffer& buffer) {
    return common::View{buffer.pointer<void>(), std::int64_t{s.q_rows} * s.heads * 64,
                        std::int64_t{s.heads} * 64, 64};
  };
  const Dim3 q_grid = {std::uint32_t(sequences.q.all_tiles), std::uint32_t(s.heads), 1};
  const Dim3 k_grid = {std::uint32_t(sequences.k.all_tiles), q_grid.y, 1};
  const Dim3 memory_grid = {std::uint32_t(s.batch * shared::tiles_of(s.q_rows, 128)), q_grid.y, 1};

  common::PreprocessParameters pre = {};
  pre.out = view(out);
  pre.dout = view(dout);
  pre.lse = {lse.pointer<float>(), std::int64_t{s.heads} * s.q_rows, s.q_rows};
  pre.lse_log2 = lse_log2.pointer<float>();
  pre.delta = delta.pointer<float>();
  pre.dq_accum = dq_accum.pointer<float>();
  pre.sequences = sequences;
  pre.head_dim = 64;
  const KernelImage& common_image = *find_image("sm100_common");
  Status status = launch(bench, common_image, "preprocess_sm100_d64_bf16", q_grid, common::kThreads, 0, pre);
  EXPECT_TRUE(status.ok()) << status.sentence();

  backward::Parameters main = {};
  encode(bench, q.address(), s.q_rows, s, 64, Swizzle::k128, &main.q, 128, 5);
  encode(bench, k.address(), s.k_rows, s, 64, Swizzle::k128, &main.k, 128, 5);
  encode(bench, v.address(), s.k_rows, s, 64, Swizzle::k128, &main.v, 128, 5);
  encode(bench, dout.address(), s.q_rows, s, 64, Swizzle::k128, &main.dout, 128, 5);
  encode(bench, dk.address(), s.k_rows, s, 32, Swizzle::k64, &main.dk, 128, 5);
  encode(bench, dv.address(), s.k_rows, s, 32, Swizzle::k64, &main.dv, 128, 5);
  main.lse_log2 = lse_log2.pointer<float>();
  main.delta = delta.pointer<float>();
  main.dq_accum = dq_accum.pointer<float>();
  main.scale = static_cast<float>(in.scale);
  main.scale_log2 = static_cast<float>(in.scale * 1.4426950408889634);
  main.group = 1;
  main.sequences = sequences;
  KernelImage image = *find_image("sm100_backward");
  std::string ptx;
  if (defect && defect->parameters) defect->parameters(main);
  if (defect && defect->ptx) {
    ptx = text_of(image);
    defect->ptx(ptx);
    image.ptx = ptx;
  }
  status = launch(bench, image,
                  std::string("backward_sm100_d64_bf16_") + (s.causal ? "causal_" : "dense_") + variant,
                  k_grid, backward::kThreads, backward::shared_bytes(64), main);
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
  status = launch(bench, common_image, "postprocess_sm100_d64_bf16", memory_grid, common::kThreads, 0, post);
  EXPECT_TRUE(status.ok()) << status.sentence();

  EXPECT_TRUE(bench.wait(nullptr).ok());
  EXPECT_EQ(q.read<std::uint16_t>(), in.q);
  EXPECT_EQ(dout.read<std::uint16_t>(), in.dout);
  for (const Buffer* workspace : {&lse_log2, &delta, &dq_accum}) workspace->read<float>();  // its guards
  return {dq.read<std::uint16_t>(), dk.read<std::uint16_t>(), dv.read<std::uint16_t>()};
}

// Right when no further from the exact gradient than twice what rounding to bf16 on the way explains, over
// the largest element and in the L2 norm. The floor is what fp32 sums of order-one products leave where all
// else cancels.
inline ::testing::AssertionResult close(const std::vector<std::uint16_t>& got,
                                        const std::vector<double>& exact,
                                        const std::vector<double>& narrowed) {
  constexpr double kFloor = 2e-5;
  double explained = 0, square = 0, square_explained = 0, worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(from_bf16(got[i]) - exact[i]), rounding = std::abs(narrowed[i] - exact[i]);
    explained = std::max(explained, rounding);
    square += error * error;
    square_explained += rounding * rounding;
    if (!(error <= worst)) {
      worst = error;
      where = i;
    }
  }
  const double limit = 2 * explained + kFloor;
  if (!(worst <= limit)) {
    return ::testing::AssertionFailure() << "element " << where << " is " << from_bf16(got[where])
                                         << ", exact " << exact[where] << ", more than " << limit << " apart";
  }
  const double norm = std::sqrt(square);
  const double norm_limit = 2 * std::sqrt(square_explained) + kFloor * std::sqrt(double(got.size()));
  if (!(norm <= norm_limit)) {
    return ::testing::AssertionFailure()
           << "the L2 norm of the error is " << norm << ", more than " << norm_limit;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace flashback::testing
