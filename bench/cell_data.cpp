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

// Of the blocks of a tensor: the squares of what it differs by, and of what it is compared with.
class Sums {
 public:
  void add_block(double difference, double size) {
    difference_ += difference;
    size_ += size;
    const double of_block = relative(difference, size);
    // What is not a number is the largest, and stays it.
    if (!(of_block <= worst_) && !std::isnan(worst_)) worst_ = of_block;
  }
  Distance distance() const { return {relative(difference_, size_), worst_}; }

 private:
  static double relative(double difference, double size) {
    return difference == 0 ? 0 : std::sqrt(difference / size);
  }
  double difference_ = 0, size_ = 0, worst_ = 0;
};

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
  const bool forward = cell.direction == Direction::kForward;
  Tensors tensors = packed_tensors(s);
  tensors.q.data = filled(of_q, 1);
  tensors.k.data = filled(of_k, 1);
  tensors.v.data = filled(of_k, 1);
  if (!forward) {
    tensors.out.data = filled(of_q, kOutDeviation);
    tensors.dout.data = filled(of_q, 1);
    const std::vector<float> lse = expected_lse(cell);
    tensors.lse.data = uploaded(std::as_bytes(std::span(lse)));
  }
  Address cu_seqlens = 0;
  if (cell.packed) {
    tensors.lse.batch_stride = s.seqlen_q;
    tensors.lse.head_stride = s.batch * s.seqlen_q;
    const std::vector<std::int32_t> begins = boundaries(s);
    cu_seqlens = uploaded(std::as_bytes(std::span(begins)));
  }
  for (Pass& pass : passes_) {
    if (forward) {
      tensors.out.data = allocate(std::size_t(of_q) * 2);
      tensors.lse.data = allocate(std::size_t(rows()) * sizeof(float));
    } else {
      tensors.dq.data = allocate(std::size_t(of_q) * 2);
      tensors.dk.data = allocate(std::size_t(of_k) * 2);
      tensors.dv.data = allocate(std::size_t(of_k) * 2);
    }
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
  for (const Output& output : outputs(pass(set))) {
    const std::int64_t elements = cell_.shape.batch * output.rows * output.heads * cell_.shape.head_dim;
    require(workbench_.fill(output.tensor.data, kPoison, std::size_t(elements) / 2, stream_));
  }
  if (cell_.direction == Direction::kForward)
    require(workbench_.fill(pass(set).tensors.lse.data, kPoison, std::size_t(rows()), stream_));
}

Distance CellData::distance(const Output& a, const Output& b) {
  const CompareParameters parameters{view(a.tensor), view(b.tensor), std::bit_cast<float*>(sums_),
                                     std::int32_t(a.rows), std::int32_t(cell_.shape.head_dim)};
  const Dim3 grid{std::uint32_t((a.rows + kBlockRows - 1) / kBlockRows), std::uint32_t(a.heads),
                  std::uint32_t(cell_.shape.batch)};
  launch(cell_.dtype == Dtype::kBf16 ? "bench_compare_bf16" : "bench_compare_fp16", grid,
         bytes_of(parameters));
  std::vector<float> sums(std::size_t{grid.x} * grid.y * grid.z * 2);
  require(workbench_.download(std::as_writable_bytes(std::span(sums)), sums_, stream_));
  require(workbench_.wait(stream_));
  Sums all;
  for (std::size_t i = 0; i < sums.size(); i += 2) all.add_block(sums[i], sums[i + 1]);
  return all.distance();
}

std::vector<float> CellData::lse(int set) {
  std::vector<float> lse(static_cast<std::size_t>(rows()));
  require(workbench_.download(std::as_writable_bytes(std::span(lse)), pass(set).tensors.lse.data, stream_));
  require(workbench_.wait(stream_));
  return lse;
}

// By the same blocks, on the processor: lse is small. Padded or packed, rows of a head's sequence are
// together.
Distance CellData::lse_distance(int set) {
  const std::vector<float> a = lse(set), b = lse(0);
  Sums all;
  for (std::int64_t first = 0; first < rows(); first += cell_.shape.seqlen_q) {
    for (std::int64_t row = 0; row < cell_.shape.seqlen_q; row += kBlockRows) {
      double difference = 0, size = 0;
      for (std::int64_t i = row; i < std::min(row + kBlockRows, cell_.shape.seqlen_q); ++i) {
        const double x = a[std::size_t(first + i)], y = b[std::size_t(first + i)];
        difference += (x - y) * (x - y);
        size += y * y;
      }
      all.add_block(difference, size);
    }
  }
  return all.distance();
}

Distances CellData::distances(int set) {
  Distances distances;
  const std::vector<Output> a = outputs(pass(set)), b = outputs(pass(0));
  for (std::size_t i = 0; i < a.size(); ++i) distances.add(a[i].name, distance(a[i], b[i]));
  if (cell_.direction == Direction::kForward) distances.add("lse", lse_distance(set));
  return distances;
}

}  // namespace flashback::bench
