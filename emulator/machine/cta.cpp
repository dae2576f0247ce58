#include "emulator/machine/cta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine/mbarrier.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator {
namespace {

// Sweeps in which warps only polled: after so many, what they poll for will not come.
constexpr std::uint32_t kMostIdleSweeps = 1 << 16;

}  // namespace

void Cta::start(const LaunchState& launch, Dim3 index, std::uint64_t number) {
  launch_ = &launch;
  index_ = index;
  number_ = number;

  constexpr std::size_t kAlignment = 1024;
  const std::size_t shared_bytes = launch.shared_bytes();
  if (shared_memory_.size() < shared_bytes + kAlignment) shared_memory_.resize(shared_bytes + kAlignment);
  const auto memory = reinterpret_cast<std::uintptr_t>(shared_memory_.data());
  shared_ = shared_memory_.data() + (kAlignment - memory % kAlignment) % kAlignment;
  shared_end_ = kSharedBase + static_cast<std::uint32_t>(shared_bytes);
  std::memset(shared_, 0xff, shared_bytes);

  barriers.reset(launch.warps());
  register_pool.reset(launch.warps(), launch.program->registers_at_launch);
  tensor_memory.reset();
  warpgroups.assign((launch.warps() + 3) / 4, {});
  const std::uint64_t linear = index.x + launch.grid.x * (index.y + std::uint64_t{launch.grid.y} * index.z);
  work.reset(launch.schedule, launch.schedule.seed * 0x9e3779b97f4a7c15 + linear);
  last_range_ = {};
  idle_sweeps_ = 0;

  warps_.resize(launch.warps());
  live_warps_ = warps_.size();
  for (std::size_t w = 0; w < warps_.size(); ++w) warps_[w].start(*this, static_cast<int>(w));
  if (launch.observer != nullptr) launch.observer->cta_began(*this);
}

std::byte* Cta::shared(std::uint32_t address, std::size_t bytes, const char* what) {
  if (!shared_holds(address, bytes)) {
    throw Misuse(
        fmt::format("{} of {} bytes at shared address {:#x}; the CTA's shared memory is {:#x} to {:#x}", what,
                    bytes, address, kSharedBase, shared_end_));
  }
  return shared(address);
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
  launch_->reductions->wait_for_turn(number_);
  log_.apply();
}

void Cta::reduce(Address address, std::span<const float> values) {
  ReductionOrder* order = launch_->reductions;
  if (order != nullptr && !order->has_turn(number_)) {
    log_.append(address, values);
    return;
  }
  if (!log_.empty()) log_.apply();
  add_floats(address, values);
}

void Cta::finish() {
  if (launch_->observer != nullptr) launch_->observer->cta_ended(*this);
  if (launch_->reductions != nullptr) launch_->reductions->finish(number_, std::exchange(log_, {}));
}

void Cta::fault_stuck() const {
  if (launch_->observer != nullptr) launch_->observer->stuck(*this);
  throw Fault(describe_waits());
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
  if (launch_->observer != nullptr) launch_->observer->warp_ended(warp);
  --live_warps_;
  return true;
}

// The warps are gone; what they issued still happens.
void Cta::run_out() {
  while (work.run_one()) {
  }
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

Cta::Progress Cta::sweep() {
  const bool observed = launch_->observer != nullptr;
  if (launch_->schedule.completion == Completion::kRandom) {
    return observed ? sweep_at_random<true>() : sweep_at_random<false>();
  }
  return observed ? sweep_in_order<true>() : sweep_in_order<false>();
}

template <bool kObserved>
Cta::Progress Cta::sweep_in_order() {
  bool moved = false, polled = false, slice_ended = false;
  for (Warp& warp : warps_) {
    if (warp.finished()) continue;
    switch (warp.run<kObserved>(launch_->slice())) {
      case Warp::Progress::kNone:
        break;
      case Warp::Progress::kPolled:
        polled = true;
        break;
      case Warp::Progress::kMoved:
        moved = true;
        break;
      case Warp::Progress::kSliceEnded:
        slice_ended = true;
        break;
    }
    if (warp_ran(warp)) moved = true;
  }
  if (live_warps_ == 0) {
    run_out();
    return Progress::kFinished;
  }
  if (moved) {
    idle_sweeps_ = 0;
    return Progress::kMoved;
  }
  // Whoever polls or spins may wait for work that is still to take effect.
  if (work.run_one()) {
    idle_sweeps_ = 0;
    return Progress::kMoved;
  }
  if (slice_ended) return Progress::kMoved;
  return polled && ++idle_sweeps_ < kMostIdleSweeps ? Progress::kMoved : Progress::kStuck;
}

// A random warp runs a random number of instructions, or a random piece of work takes effect.
template <bool kObserved>
Cta::Progress Cta::sweep_at_random() {
  Random& random = work.random();
  const std::size_t attempts = 8 * warps_.size();
  bool polled = false;
  for (std::size_t idle = 0; idle < attempts;) {
    if (random.below(3) == 0 && work.run_one()) {
      idle_sweeps_ = 0;
      return Progress::kMoved;
    }
    Warp& warp = warps_[random.below(warps_.size())];
    const std::uint64_t slice = random.below(4) == 0 ? launch_->slice() : 1 + random.below(300);
    if (warp.finished()) {
      ++idle;
      continue;
    }
    const Warp::Progress progress = warp.run<kObserved>(static_cast<std::uint32_t>(slice));
    const bool ended = warp_ran(warp);
    if (live_warps_ == 0) {
      run_out();
      return Progress::kFinished;
    }
    if (ended || progress == Warp::Progress::kMoved) {
      idle_sweeps_ = 0;
      return Progress::kMoved;
    }
    if (progress == Warp::Progress::kSliceEnded) return Progress::kMoved;
    polled |= progress == Warp::Progress::kPolled;
    ++idle;
  }
  // Unlucky draws must not pass for a deadlock: everyone once, in order.
  if (const Progress progress = sweep_in_order<kObserved>(); progress != Progress::kStuck) return progress;
  return polled && ++idle_sweeps_ < kMostIdleSweeps ? Progress::kMoved : Progress::kStuck;
}

}  // namespace flashback::emulator
