// Host memory for the shared memory of a cluster's CTAs, laid out as their addresses are: rank r's lies
// r << kRankShift bytes behind that of rank 0, with nothing between. So a shared address is an offset,
// whichever CTA it names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flashback::emulator {

class ClusterMemory {
 public:
  ClusterMemory() = default;
  ~ClusterMemory() { release(); }
  ClusterMemory(const ClusterMemory&) = delete;
  ClusterMemory& operator=(const ClusterMemory&) = delete;

  // Room for the largest shared memory of `ranks` CTAs. Throws std::bad_alloc.
  void reserve(std::uint32_t ranks);
  // Where shared address 0 lies.
  std::byte* window() const { return window_; }

 private:
  void release();

  std::byte* window_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t ranks_ = 0;
};

}  // namespace flashback::emulator
