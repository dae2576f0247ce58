#include "emulator/machine/cluster_barrier.h"

#include <fmt/format.h>

#include "emulator/machine/fault.h"

namespace flashback::emulator {

void ClusterBarrier::reset(std::uint32_t warps) {
  warps_.assign(warps, {});
  live_ = warps;
  arrived_ = generation_ = 0;
}

std::uint32_t ClusterBarrier::arrive(std::uint32_t warp) {
  if (warps_[warp].inside) {
    throw Misuse("a second arrival at the cluster barrier; barrier.cluster.wait must stand between the two");
  }
  const std::uint32_t joined = generation_;
  warps_[warp] = {true, joined};
  ++arrived_;
  complete_if_full();
  return joined;
}

std::optional<std::uint32_t> ClusterBarrier::pass(std::uint32_t warp) {
  if (!warps_[warp].inside) {
    throw Misuse("a wait at the cluster barrier without barrier.cluster.arrive before it");
  }
  if (warps_[warp].generation == generation_) return std::nullopt;
  warps_[warp].inside = false;
  return warps_[warp].generation;
}

void ClusterBarrier::warp_exited(std::uint32_t warp) {
  if (warps_[warp].inside && warps_[warp].generation == generation_) --arrived_;
  --live_;
  complete_if_full();
}

void ClusterBarrier::complete_if_full() {
  if (arrived_ == 0 || arrived_ < live_) return;
  ++generation_;
  arrived_ = 0;
}

std::string ClusterBarrier::describe() const {
  return fmt::format("{} of {} warps have arrived", arrived_, live_);
}

}  // namespace flashback::emulator
