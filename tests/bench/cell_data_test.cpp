// The inputs that the bench makes and the comparison it rests on, on the emulator.
#include "bench/cell_data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/reference/rounding.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using reference::from_bits;

class Data : public ::testing::TestWithParam<Arch> {
 protected:
  Data() { program::require(open_emulator(GetParam(), 2, &workbench_)); }

  std::vector<float> values(const Tensor& tensor, std::int64_t elements) {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(elements));
    program::require(workbench_->download(std::as_writable_bytes(std::span(bits)), tensor.data, nullptr));
    program::require(workbench_->wait(nullptr));
    return from_bits(Dtype::kBf16, bits);
  }
  void write(const Tensor& tensor, const std::vector<float>& values) {
    const std::vector<std::uint16_t> bits = reference::to_bits(Dtype::kBf16, values);
    program::require(workbench_->upload(tensor.data, std::as_bytes(std::span(bits)), nullptr));
    program::require(workbench_->wait(nullptr));
  }

  std::unique_ptr<Workbench> workbench_;
};

// Moments within five standard errors of those of a normal distribution, and neighbours that know nothing of
// each other.
void expect_normal(const std::vector<float>& values, double deviation) {
  double sum = 0, squares = 0, fourths = 0, neighbours = 0, pairs = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i] / deviation;
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    if (i > 0) neighbours += x * values[i - 1] / deviation;
    if (i > 1) pairs += x * values[i - 2] / deviation;
  }
  const double n = double(values.size()), error = 5 / std::sqrt(n);
  EXPECT_NEAR(sum / n, 0, error);
  EXPECT_NEAR(squares / n, 1, error * std::sqrt(2));
  EXPECT_NEAR(fourths / n, 3, error * std::sqrt(96));
  EXPECT_NEAR(neighbours / n, 0, error);
  EXPECT_NEAR(pairs / n, 0, error);
}

TEST_P(Data, IsNormalAndDiffersFromTensorToTensor) {
  const CellData data(*workbench_, nullptr, {Mask::kDense, {1, 2, 2, 256, 256, 64}});
  const Tensors& t = data.pass(0).tensors;
  constexpr std::int64_t kElements = 256 * 2 * 64;
  expect_normal(values(t.q, kElements), 1);
  expect_normal(values(t.dout, kElements), 1);
  expect_normal(values(t.out, kElements), 0.02);
  EXPECT_NE(values(t.q, kElements), values(t.k, kElements));
  EXPECT_NE(values(t.k, kElements), values(t.v, kElements));
}

TEST_P(Data, LseExceedsEveryScore) {
  const CellData data(*workbench_, nullptr, {Mask::kCausal, {1, 2, 2, 4, 4, 64}});
  std::vector<float> lse(8);
  program::require(
      workbench_->download(std::as_writable_bytes(std::span(lse)), data.pass(0).tensors.lse.data, nullptr));
  for (std::size_t i = 0; i < lse.size(); ++i)
    EXPECT_FLOAT_EQ(lse[i], std::log(float(i % 4 + 1)) + 6.0f) << i;
}

TEST_P(Data, PackedSequencesHaveTheirPlaceInLse) {
  Cell cell = {Mask{1, 0}, {3, 2, 2, 4, 4, 64}};
  cell.packed = true;
  const CellData data(*workbench_, nullptr, cell);
  const Pass& pass = data.pass(0);
  std::vector<std::int32_t> cu_seqlens(4);
  program::require(
      workbench_->download(std::as_writable_bytes(std::span(cu_seqlens)), pass.cu_seqlens, nullptr));
  EXPECT_EQ(cu_seqlens, (std::vector<std::int32_t>{0, 4, 8, 12}));
  EXPECT_EQ(pass.tensors.lse.head_stride, 12);
  EXPECT_EQ(pass.tensors.lse.batch_stride, 4);
  std::vector<float> lse(24);
  program::require(
      workbench_->download(std::as_writable_bytes(std::span(lse)), pass.tensors.lse.data, nullptr));
  for (std::size_t i = 0; i < lse.size(); ++i)
    EXPECT_FLOAT_EQ(lse[i], std::log(i % 4 == 0 ? 1.0f : 2.0f) + 6.0f) << i;
}

// One element of 100 rows x 2 heads differs, in the second block of the second head.
TEST_P(Data, DistancesAreThoseOfTheBlocks) {
  CellData data(*workbench_, nullptr, {Mask::kDense, {1, 2, 2, 100, 100, 64}});
  const Tensors &first = data.pass(0).tensors, &second = data.pass(1).tensors;
  constexpr std::size_t kElements = 100 * 2 * 64, kBlockElements = 36 * 64;
  std::vector<float> ones(kElements, 1.0f);
  for (const Tensors* t : {&first, &second}) {
    for (const Tensor* gradient : {&t->dq, &t->dk, &t->dv}) write(*gradient, ones);
  }
  EXPECT_EQ(data.distances(1).of("dq").tensor, 0);
  EXPECT_EQ(data.distances(1).of("dq").block, 0);
  ones[(90 * 2 + 1) * 64 + 63] = 4;
  write(second.dv, ones);
  const Distances distances = data.distances(1);
  EXPECT_EQ(distances.of("dq").block, 0);
  EXPECT_NEAR(distances.of("dv").tensor, 3 / std::sqrt(double(kElements)), 1e-6);
  EXPECT_NEAR(distances.of("dv").block, 3 / std::sqrt(double(kBlockElements)), 1e-6);

  ones[(90 * 2 + 1) * 64 + 63] = NAN;
  write(second.dv, ones);
  EXPECT_TRUE(std::isnan(data.distances(1).of("dv").tensor));
  EXPECT_TRUE(std::isnan(data.distances(1).of("dv").block));
  data.poison(0);
  EXPECT_TRUE(std::isnan(data.distances(0).of("dq").tensor));
  EXPECT_TRUE(std::isnan(data.distances(0).of("dk").block));
}

// A forward pass has outputs and lse of its own in either set.
TEST_P(Data, OfAForwardPassLseIsComparedToo) {
  Cell cell = {Mask::kDense, {2, 2, 2, 100, 100, 64}};
  cell.direction = Direction::kForward;
  CellData data(*workbench_, nullptr, cell);
  for (int set : {0, 1}) {
    const Tensors& t = data.pass(set).tensors;
    EXPECT_EQ(t.dout.data, 0u);
    EXPECT_EQ(t.dq.data, 0u);
    write(t.out, std::vector<float>(2 * 100 * 2 * 64, 1.0f));
  }
  EXPECT_NE(data.pass(0).tensors.out.data, data.pass(1).tensors.out.data);
  const auto write_lse = [&](int set, const std::vector<float>& lse) {
    program::require(
        workbench_->upload(data.pass(set).tensors.lse.data, std::as_bytes(std::span(lse)), nullptr));
    program::require(workbench_->wait(nullptr));
  };
  std::vector<float> lse(2 * 2 * 100, 2.0f);
  write_lse(0, lse);
  lse[3 * 100 + 99] = 5;  // in a block of 36 rows
  write_lse(1, lse);
  const Distances distances = data.distances(1);
  EXPECT_EQ(distances.of("out").tensor, 0);
  EXPECT_NEAR(distances.of("lse").tensor, 3 / (2 * std::sqrt(400.0)), 1e-6);
  EXPECT_NEAR(distances.of("lse").block, 3 / (2 * std::sqrt(36.0)), 1e-6);
  data.poison(1);
  EXPECT_TRUE(std::isnan(data.distances(1).of("out").tensor));
  EXPECT_TRUE(std::isnan(data.distances(1).of("lse").block));
}

INSTANTIATE_TEST_SUITE_P(Arch, Data, ::testing::Values(Arch::kSm90, Arch::kSm100),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace flashback::bench
