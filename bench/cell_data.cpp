#include "bench/cell_data.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "bench/kernels/images.h"
#include "bench/kernels/parameters.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using program::require;

constexpr std::uint32_t kPoison = 0xffffffff;  // two NaNs in bf16
constexpr std::uint32_t kFillCtas = 1024;
constexpr float kOutDeviation = 0.02f;  // of an average of about 1000 values

template <typename Parameters>
std::span<const std::byte> bytes_of(const Parameters& parameters) {
  return std::as_bytes(std::span(&parameters, 1));
}

common::View view(const Tensor& tensor) {
  return {std::bit_cast<void*>(tensor.data), tensor.batch_stride, tensor.row_stride, tensor.head_stride};
}

// ln of a sum of n times exp of N(0, 1) is about ln n + 1/2. Six, so that no score exceeds it: where one does
// P is more than 1, and contenders differ in what they make of that.
std::vector<float> expected_lse(const Cell& cell) {
  const Shape& s = cell.shape;
  std::vector<float> of_head;
  for (std::int64_t row = 0; row < s.seqlen_q; ++row) {
    const std::int64_t keys = cell.mask == Mask::kCausal ? row + 1 + s.seqlen_k - s.seqlen_q : s.seqlen_k;
    of_head.push_back(std::log(float(keys)) + 6.0f);
  }
  std::vector<float> lse;
  for (std::int64_t head = 0; head < s.batch * s.heads; ++head)
    lse.insert(lse.end(), of_head.begin(), of_head.end());
  return lse;
}

}  // namespace

CellData::CellData(Workbench& workbench, Stream stream, const Cell& cell)
    : workbench_(workbench), stream_(stream), shape_(cell.shape) {
  const Shape& s = cell.shape;
  const std::int64_t of_q = s.batch * s.seqlen_q * s.heads * s.head_dim,
                     of_k = s.batch * s.seqlen_k * s.kv_heads * s.head_dim;
  Tensors tensors = packed_tensors(s);
  tensors.q.data = filled(of_q, 1);
  tensors.k.data = filled(of_k, 1);
  tensors.v.data = filled(of_k, 1);
  tensors.out.data = filled(of_q, kOutDeviation);
  tensors.dout.data = filled(of_q, 1);
  const std::vector<float> lse = expected_lse(cell);
  tensors.lse.data = allocate(lse.size() * sizeof(float));
  require(workbench_.upload(tensors.lse.data, std::as_bytes(std::span(lse)), stream_));
  for (Pass& pass : passes_) {
    tensors.dq.data = allocate(std::size_t(of_q) * 2);
    tensors.dk.data = allocate(std::size_t(of_k) * 2);
    tensors.dv.data = allocate(std::size_t(of_k) * 2);
    pass = {cell.mask, s, tensors, stream_};
  }
  const std::int64_t blocks = (std::max(s.seqlen_q, s.seqlen_k) + kBlockRows - 1) / kBlockRows;
  sums_ = allocate(std::size_t(s.batch * s.heads * blocks) * 2 * sizeof(float));
  require(workbench_.wait(stream_));  // for lse, which ends here
}

CellData::~CellData() {
  for (const Address address : memory_) workbench_.release(address);
}

Address CellData::allocate(std::size_t bytes) {
  Address address = 0;
  require(workbench_.allocate(bytes, &address));
  memory_.push_back(address);
  return address;
}

Address CellData::filled(std::int64_t elements, float deviation) {
  const Address address = allocate(std::size_t(elements) * 2);
  const FillParameters parameters{std::bit_cast<std::uint32_t*>(address), std::uint64_t(elements) / 2,
                                  ++seed_, deviation};
  const auto ctas = std::min<std::uint64_t>(kFillCtas, (parameters.words + kThreads - 1) / kThreads);
  launch("bench_fill", {std::uint32_t(ctas)}, bytes_of(parameters));
  return address;
}

void CellData::launch(const char* entry, Dim3 grid, std::span<const std::byte> parameters) {
  require(workbench_.launch({.image = &kernels_for(workbench_.arch()),
                             .entry = entry,
                             .grid = grid,
                             .cluster = {},
                             .block = {kThreads},
                             .shared_bytes = 0,
                             .parameters = parameters},
                            stream_));
}

void CellData::poison(int set) {
  const Tensors& t = pass(set).tensors;
  const std::size_t of_q = std::size_t(shape_.batch * shape_.seqlen_q * shape_.heads * shape_.head_dim),
                    of_k = std::size_t(shape_.batch * shape_.seqlen_k * shape_.kv_heads * shape_.head_dim);
  require(workbench_.fill(t.dq.data, kPoison, of_q / 2, stream_));
  require(workbench_.fill(t.dk.data, kPoison, of_k / 2, stream_));
  require(workbench_.fill(t.dv.data, kPoison, of_k / 2, stream_));
}

Distance CellData::distance(const Tensor& a, const Tensor& b, std::int64_t rows, std::int64_t heads) {
  const CompareParameters parameters{view(a), view(b), std::bit_cast<float*>(sums_), std::int32_t(rows)};
  const Dim3 grid{std::uint32_t((rows + kBlockRows - 1) / kBlockRows), std::uint32_t(heads),
                  std::uint32_t(shape_.batch)};
  launch("bench_compare", grid, bytes_of(parameters));
  std::vector<float> sums(std::size_t{grid.x} * grid.y * grid.z * 2);
  require(workbench_.download(std::as_writable_bytes(std::span(sums)), sums_, stream_));
  require(workbench_.wait(stream_));
  const auto relative = [](double difference, double size) {
    return difference == 0 ? 0 : std::sqrt(difference / size);
  };
  Distance distance;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < sums.size(); i += 2) {
    difference += sums[i];
    size += sums[i + 1];
    const double of_block = relative(sums[i], sums[i + 1]);
    // What is not a number is the largest, and stays it.
    if (!(of_block <= distance.block) && !std::isnan(distance.block)) distance.block = of_block;
  }
  distance.tensor = relative(difference, size);
  return distance;
}

Distances CellData::distances(int set) {
  const Tensors &a = pass(set).tensors, &b = pass(0).tensors;
  return {distance(a.dq, b.dq, shape_.seqlen_q, shape_.heads),
          distance(a.dk, b.dk, shape_.seqlen_k, shape_.kv_heads),
          distance(a.dv, b.dv, shape_.seqlen_k, shape_.kv_heads)};
}

}  // namespace flashback::bench
