#include "emulator/machine/cta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/cluster.h"

namespace flashback::emulator {
void Cta::start(const LaunchState& launch, Dim3 index, std::uint32_t rank, std::uint64_t number,
                std::byte* window, ReductionLog* log) {
  launch_ = &launch;
  index_ = index;
  rank_ = rank;
  number_ = number;
  log_ = log;

  window_ = window;
  shared_begin_ = on_rank(kSharedBase, rank);
  shared_end_ = shared_begin_ + launch.shared_bytes();
  std::memset(shared(shared_begin_), 0xff, launch.shared_bytes());

  barriers.reset(launch.warps());
  register_pool.reset(launch.warps(), launch.program->registers_at_launch);
  tensor_memory.reset();
  warpgroups.assign((launch.warps() + 3) / 4, {});
  const std::uint64_t linear = index.x + launch.grid.x * (index.y + std::uint64_t{launch.grid.y} * index.z);
  work.reset(launch.schedule, launch.schedule.seed * 0x9e3779b97f4a7c15 + linear);
  last_range_ = {};

  warps_.resize(launch.warps());
  live_warps_ = warps_.size();
  for (std::size_t w = 0; w < warps_.size(); ++w) warps_[w].start(*this, static_cast<int>(w));
}

std::byte* Cta::shared(std::uint32_t address, std::size_t bytes, const char* what) {
  if (!shared_holds(address, bytes)) {
    throw Misuse(
        fmt::format("{} of {} bytes at shared address {:#x}; the CTA's shared memory is {:#x} to {:#x}", what,
                    bytes, address, shared_begin_, shared_end_),
        FaultKind::kIllegalAddress);
  }
  return shared(address);
}

bool Cta::cluster_holds(std::uint32_t address, std::size_t bytes) const {
  const std::uint32_t rank = rank_of(address);
  if (rank == rank_) return shared_holds(address, bytes);
  return rank < cluster_.size() && !cluster_.cta(rank).exited() &&
         cluster_.cta(rank).shared_holds(address, bytes);
}

std::byte* Cta::cluster_shared(std::uint32_t address, std::size_t bytes, const char* what) {
  const std::uint32_t rank = rank_of(address);
  if (rank == rank_) return shared(address, bytes, what);
  if (cluster_holds(address, bytes)) return shared(address);
  const std::string access = fmt::format("{} of {} bytes at shared address {:#x}", what, bytes, address);
  if (rank >= cluster_.size()) {
    throw Misuse(fmt::format(
        "{}, which names rank {}; the cluster has {}", access, rank,
        cluster_.size() == 1 ? "rank 0 only" : fmt::format("ranks 0 to {}", cluster_.size() - 1)));
  }
  const Cta& peer = cluster_.cta(rank);
  if (peer.exited()) {
    throw Misuse(
        fmt::format("{}, in the shared memory of CTA ({}, {}, {}), rank {} of the cluster, which has exited",
                    access, peer.index_.x, peer.index_.y, peer.index_.z, rank));
  }
  throw Misuse(fmt::format("{}; the shared memory of rank {} is {:#x} to {:#x}", access, rank,
                           peer.shared_begin_, peer.shared_end_));
}

bool Cta::find_range(Address address, std::size_t bytes) {
  const GlobalMemory::Range range = launch_->memory->range_of(address);
  if (!range.holds(address, bytes)) return false;
  last_range_ = range;
  return true;
}

bool Cta::constant_holds(Address address, std::size_t bytes) {
  const auto parameters = reinterpret_cast<std::uintptr_t>(launch_->parameters);
  const GlobalMemory::Range range{parameters, parameters + launch_->program->parameter_bytes};
  return range.holds(address, bytes) || global_holds(address, bytes);
}

void Cta::take_turn() {
  cluster_.take_turn();
}

void Cta::reduce(Address address, std::span<const float> values) {
  cluster_.reduce(address, values);
}

std::uint64_t Cta::executed() const {
  std::uint64_t sum = 0;
  for (const Warp& warp : warps_) sum += warp.executed();
  return sum;
}

// After a warp has run: true when that was its end.
bool Cta::warp_ran(Warp& warp) {
  if (!warp.finished()) return false;
  complete_all_stores(warp);
  warp.pending_loads.clear();
  warp.products.pending.clear();  // whoever does not wait for a product does not get it
  barriers.warp_exited();
  cluster_.barrier.warp_exited(cluster_warp(warp.index()));
  if (launch_->observer != nullptr) launch_->observer->warp_ended(warp);
  --live_warps_;
  return true;
}

void Cta::check_end() const {
  for (std::size_t g = 0; g < warpgroups.size(); ++g) {
    if (warpgroups[g].settled()) continue;
    throw Fault(fmt::format(
        "warps {} to {} of CTA ({}, {}, {}) of {} have not issued the same number of wgmma.mma_async", 4 * g,
        4 * g + 3, index_.x, index_.y, index_.z, launch_->program->name));
  }
  if (const std::uint32_t columns = tensor_memory.columns_in_use(); columns != 0) {
    throw Fault(fmt::format(
        "CTA ({}, {}, {}) of {} exits with {} columns of tensor memory; tcgen05.dealloc must free "
        "them before",
        index_.x, index_.y, index_.z, launch_->program->name, columns));
  }
}

template <bool kObserved>
Warp::Progress Cta::run_warps() {
  Warp::Progress most = Warp::Progress::kNone;
  for (Warp& warp : warps_) {
    if (warp.finished()) continue;
    most = std::max(most, warp.run<kObserved>(launch_->slice()));
    if (warp_ran(warp)) most = Warp::Progress::kMoved;
  }
  return most;
}

template <bool kObserved>
Warp::Progress Cta::run_any_warp() {
  Random& random = work.random();
  Warp& warp = warps_[random.below(warps_.size())];
  const std::uint64_t slice = random.below(4) == 0 ? launch_->slice() : 1 + random.below(300);
  if (warp.finished()) return Warp::Progress::kNone;
  const Warp::Progress progress = warp.run<kObserved>(static_cast<std::uint32_t>(slice));
  return warp_ran(warp) ? Warp::Progress::kMoved : progress;
}

template Warp::Progress Cta::run_warps<false>();
template Warp::Progress Cta::run_warps<true>();
template Warp::Progress Cta::run_any_warp<false>();
template Warp::Progress Cta::run_any_warp<true>();

}  // namespace flashback::emulator
