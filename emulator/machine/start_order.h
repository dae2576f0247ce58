// The order in which the clusters of a launch start, and the queues in which they wait.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/machine/launch_state.h"
#include "emulator/machine/units/work_queue.h"

namespace flashback::emulator {

// Which cluster is the n-th to start.
class StartOrder {
 public:
  explicit StartOrder(const LaunchState& launch) : clusters_(launch.clusters()) {
    if (!launch.schedule.shuffle_ctas) return;
    order_.resize(count());
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    Random random(launch.schedule.seed);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }
  std::uint64_t count() const { return std::uint64_t{clusters_.x} * clusters_.y * clusters_.z; }
  Dim3 operator[](std::uint64_t number) const {
    const std::uint64_t linear = order_.empty() ? number : order_[number];
    return {static_cast<std::uint32_t>(linear % clusters_.x),
            static_cast<std::uint32_t>(linear / clusters_.x % clusters_.y),
            static_cast<std::uint32_t>(linear / clusters_.x / clusters_.y)};
  }

 private:
  Dim3 clusters_;
  std::vector<std::uint64_t> order_;  // empty: ascending
};

// Every `stride`-th cluster from number `first` on: those that one place on the GPU gets, one after the
// other. A cluster that runs there may take over the work of the next (clusterlaunchcontrol.try_cancel).
class ClusterQueue {
 public:
  ClusterQueue(const StartOrder& order, std::uint64_t first, std::uint64_t stride)
      : order_(order), next_(first), stride_(stride) {}

  // The next one's number in start order.
  std::optional<std::uint64_t> take() {
    if (next_ >= order_.count()) return std::nullopt;
    return std::exchange(next_, next_ + stride_);
  }
  // Where it is in the grid of clusters.
  Dim3 index(std::uint64_t number) const { return order_[number]; }

 private:
  const StartOrder& order_;
  std::uint64_t next_, stride_;
};

}  // namespace flashback::emulator
