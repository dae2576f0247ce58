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

constexpr std::uint32_t kPoison = 0xffffffff;  // two NaNs in 16 bit
constexpr std::uint32_t kFillCtas = 1024;
constexpr float kOutDeviation = 0.02f;  // of an average of about 1000 values

template <typename Parameters>
std::span<const std::byte> bytes_of(const Parameters& parameters) {
  return std::as_bytes(std::span(&parameters, 1));
}

common::View view(const Tensor& tensor) {
  return {std::bit_cast<void*>(tensor.data), tensor.batch_stride, tensor.row_stride, tensor.head_stride};
}

// (batch, head, row), or (head, row) of packed sequences. ln of a sum of n times exp of N(0, 1) is about
// ln n + 1/2. Six, so that no score exceeds it: where one does P is more than 1, and contenders differ in
// what they make of that.
std::vector<float> expected_lse(const Cell& cell) {
  const Shape& s = cell.shape;
  std::vector<float> of_sequence;
  for (std::int64_t row = 0; row < s.seqlen_q; ++row)
    of_sequence.push_back(std::log(float(visible_keys(cell, row))) + 6.0f);
  std::vector<float> lse;
  for (std::int64_t i = 0; i < s.batch * s.heads; ++i)
    lse.insert(lse.end(), of_sequence.begin(), of_sequence.end());
  return lse;
}

std::vector<std::int32_t> boundaries(const Shape& s) {
  std::vector<std::int32_t> cu_seqlens;
  for (std::int64_t sequence = 0; sequence <= s.batch; ++sequence)
    cu_seqlens.push_back(std::int32_t(sequence * s.seqlen_q));
  return cu_seqlens;
}

}  // namespace

CellData::CellData(Workbench& workbench, Stream stream, const Cell& cell)
    : workbench_(workbench), stream_(stream), cell_(cell) {
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
  tensors.lse.data = uploaded(std::as_bytes(std::span(lse)));
  Address cu_seqlens = 0;
  if (cell.packed) {
    tensors.lse.batch_stride = s.seqlen_q;
    tensors.lse.head_stride = s.batch * s.seqlen_q;
    const std::vector<std::int32_t> begins = boundaries(s);
    cu_seqlens = uploaded(std::as_bytes(std::span(begins)));
  }
  for (Pass& pass : passes_) {
    tensors.dq.data = allocate(std::size_t(of_q) * 2);
    tensors.dk.data = allocate(std::size_t(of_k) * 2);
    tensors.dv.data = allocate(std::size_t(of_k) * 2);
    pass = {cell, tensors, cu_seqlens, stream_};
  }
  const std::int64_t blocks = (std::max(s.seqlen_q, s.seqlen_k) + kBlockRows - 1) / kBlockRows;
  sums_ = allocate(std::size_t(s.batch * s.heads * blocks) * 2 * sizeof(float));
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

Address CellData::uploaded(std::span<const std::byte> bytes) {
  const Address address = allocate(bytes.size());
  require(workbench_.upload(address, bytes, stream_));
  require(workbench_.wait(stream_));  // for `bytes`, which may end with the caller
  return address;
}

Address CellData::filled(std::int64_t elements, float deviation) {
  const Address address = allocate(std::size_t(elements) * 2);
  const FillParameters parameters{std::bit_cast<std::uint32_t*>(address), std::uint64_t(elements) / 2,
                                  ++seed_, deviation};
  const auto ctas = std::min<std::uint64_t>(kFillCtas, (parameters.words + kThreads - 1) / kThreads);
  launch(cell_.dtype == Dtype::kBf16 ? "bench_fill_bf16" : "bench_fill_fp16", {std::uint32_t(ctas)},
         bytes_of(parameters));
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
  const std::size_t of_q = std::size_t(cell_.shape.batch * cell_.shape.seqlen_q * cell_.shape.heads *
                                       cell_.shape.head_dim),
                    of_k = std::size_t(cell_.shape.batch * cell_.shape.seqlen_k * cell_.shape.kv_heads *
                                       cell_.shape.head_dim);
  require(workbench_.fill(t.dq.data, kPoison, of_q / 2, stream_));
  require(workbench_.fill(t.dk.data, kPoison, of_k / 2, stream_));
  require(workbench_.fill(t.dv.data, kPoison, of_k / 2, stream_));
}

Distance CellData::distance(const Tensor& a, const Tensor& b, std::int64_t rows, std::int64_t heads) {
  const CompareParameters parameters{view(a), view(b), std::bit_cast<float*>(sums_), std::int32_t(rows),
                                     std::int32_t(cell_.shape.head_dim)};
  const Dim3 grid{std::uint32_t((rows + kBlockRows - 1) / kBlockRows), std::uint32_t(heads),
                  std::uint32_t(cell_.shape.batch)};
  launch(cell_.dtype == Dtype::kBf16 ? "bench_compare_bf16" : "bench_compare_fp16", grid,
         bytes_of(parameters));
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
  return {distance(a.dq, b.dq, cell_.shape.seqlen_q, cell_.shape.heads),
          distance(a.dk, b.dk, cell_.shape.seqlen_k, cell_.shape.kv_heads),
          distance(a.dv, b.dv, cell_.shape.seqlen_k, cell_.shape.kv_heads)};
}

}  // namespace flashback::bench
