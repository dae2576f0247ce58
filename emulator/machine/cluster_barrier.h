// The barrier of barrier.cluster: a warp arrives, goes on, and waits later until all warps of the cluster
// that have not exited have arrived.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flashback::emulator {

class ClusterBarrier {
 public:
  void reset(std::uint32_t warps);

  // Warp `warp` of the cluster, counted over its CTAs. Returns the generation that it joins. Throws Misuse
  // where it has arrived and not waited since.
  std::uint32_t arrive(std::uint32_t warp);
  // The generation that it joined, once that is complete; then it may arrive again. Throws Misuse where it
  // has not arrived.
  std::optional<std::uint32_t> pass(std::uint32_t warp);
  void warp_exited(std::uint32_t warp);
  std::string describe() const;  // "3 of 8 warps have arrived"

 private:
  struct Warp {
    bool inside = false;  // has arrived and not passed
    std::uint32_t generation = 0;
  };
  void complete_if_full();

  std::vector<Warp> warps_;
  std::uint32_t live_ = 0, arrived_ = 0, generation_ = 0;
};

}  // namespace flashback::emulator
