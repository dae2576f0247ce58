// The tensors of a cell on the device, packed (batch, row, head, channel): normally distributed inputs, and
// two sets of what the pass writes. Filled and compared on the device, for a cell has gigabytes of them.
#pragma once

#include <array>
#include <vector>

#include "bench/cell.h"
#include "bench/outputs.h"

namespace flashback::bench {

// How far a tensor lies from another, relative, in the L2 norm; not a number where there is one.
struct Distance {
  double tensor = 0;
  double block = 0;  // the largest of a (batch, head, 64 rows) block
};
using Distances = OfOutputs<Distance>;

class CellData {
 public:
  // What a backward pass reads of the forward: out is small and random; lse the logarithm of the sum of exp
  // of N(0, 1) scores, as many as the row has keys, as it is expected. A packed cell has the same rows in the
  // same places.
  CellData(Workbench& workbench, Stream stream, const Cell& cell);
  ~CellData();
  CellData(const CellData&) = delete;
  CellData& operator=(const CellData&) = delete;

  // The pass that writes to set 0 or 1.
  const Pass& pass(int set) const { return passes_.at(std::size_t(set)); }
  void poison(int set);
  // From what is written in set 0; that itself is 0 away, or not a number.
  Distances distances(int set);

 private:
  Address allocate(std::size_t bytes);
  Address filled(std::int64_t elements, float deviation);
  Address uploaded(std::span<const std::byte> bytes);
  void launch(const char* entry, Dim3 grid, std::span<const std::byte> parameters);
  Distance distance(const Output& a, const Output& b);
  Distance lse_distance(int set);
  std::vector<float> lse(int set);
  std::int64_t rows() const { return cell_.shape.batch * cell_.shape.heads * cell_.shape.seqlen_q; }

  Workbench& workbench_;
  const Stream stream_;
  const Cell cell_;
  std::vector<Address> memory_;
  std::uint32_t seed_ = 0;
  std::array<Pass, 2> passes_;
  Address sums_ = 0;
};

}  // namespace flashback::bench
