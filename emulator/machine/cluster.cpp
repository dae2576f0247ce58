#include "emulator/machine/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emulator/machine/observer.h"
#include "emulator/machine/start_order.h"

namespace flashback::emulator {
namespace {

// Sweeps in which warps only polled: after so many, what they poll for will not come.
constexpr std::uint32_t kMostIdleSweeps = 1 << 16;

}  // namespace

void Cluster::start(const LaunchState& launch, std::uint64_t number, std::uint64_t place,
                    ClusterQueue* queue) {
  launch_ = &launch;
  place_ = place;
  queue_ = queue;
  idle_sweeps_ = 0;
  size_ = launch.cluster_size();
  while (ctas_.size() < size_) ctas_.push_back(std::make_unique<Cta>(*this));
  memory_.reserve(size_);
  barrier.reset(size_ * launch.warps());
  const Dim3 shape = launch.cluster, index = queue->index(number);
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    const Dim3 cta{index.x * shape.x + rank % shape.x, index.y * shape.y + rank / shape.x % shape.y,
                   index.z * shape.z + rank / shape.x / shape.y};
    ctas_[rank]->start(launch, cta, rank, number * size_ + rank, memory_.window(), &log_);
  }
  if (launch.observer == nullptr) return;
  for (std::uint32_t rank = 0; rank < size_; ++rank) launch.observer->cta_began(*ctas_[rank]);
}

void Cluster::take_turn() {
  launch_->reductions->wait_for_turn(place_);
  log_.apply();
}

void Cluster::reduce(Address address, std::span<const float> values) {
  ReductionOrder* order = launch_->reductions;
  if (order != nullptr && !order->has_turn(place_)) {
    log_.append(address, values);
    return;
  }
  if (!log_.empty()) log_.apply();
  add_floats(address, values);
}

std::optional<Dim3> Cluster::cancel_next() {
  const std::optional<std::uint64_t> number = queue_->take();
  if (!number) return std::nullopt;
  const Dim3 index = queue_->index(*number), shape = launch_->cluster;
  return Dim3{index.x * shape.x, index.y * shape.y, index.z * shape.z};
}

void Cluster::end() {
  if (launch_->observer == nullptr) return;
  for (std::uint32_t rank = 0; rank < size_; ++rank) launch_->observer->cta_ended(*ctas_[rank]);
}

ReductionLog Cluster::take_log() {
  return std::exchange(log_, {});
}

std::uint64_t Cluster::executed() const {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < size_; ++rank) sum += ctas_[rank]->executed();
  return sum;
}

std::uint64_t Cluster::matrix_instructions() const {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < size_; ++rank) sum += ctas_[rank]->work.matrix_instructions();
  return sum;
}

bool Cluster::all_exited() const {
  return std::all_of(ctas_.begin(), ctas_.begin() + size_, [](const auto& cta) { return cta->exited(); });
}

// The warps are gone; what they issued still happens.
void Cluster::run_out() {
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    while (ctas_[rank]->work.run_one()) {
    }
  }
  for (std::uint32_t rank = 0; rank < size_; ++rank) ctas_[rank]->check_end();
}

Cluster::Progress Cluster::sweep() {
  const bool observed = launch_->observer != nullptr;
  if (launch_->schedule.completion == Completion::kRandom) {
    return observed ? sweep_at_random<true>() : sweep_at_random<false>();
  }
  return observed ? sweep_in_order<true>() : sweep_in_order<false>();
}

template <bool kObserved>
Cluster::Progress Cluster::sweep_in_order() {
  Warp::Progress most = Warp::Progress::kNone;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    most = std::max(most, ctas_[rank]->run_warps<kObserved>());
  }
  if (all_exited()) {
    run_out();
    return Progress::kFinished;
  }
  if (most == Warp::Progress::kMoved) {
    idle_sweeps_ = 0;
    return Progress::kMoved;
  }
  // Whoever polls or spins may wait for work that is still to take effect.
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (!ctas_[rank]->work.run_one()) continue;
    idle_sweeps_ = 0;
    return Progress::kMoved;
  }
  if (most == Warp::Progress::kSliceEnded) return Progress::kMoved;
  const bool polled = most == Warp::Progress::kPolled;
  return polled && ++idle_sweeps_ < kMostIdleSweeps ? Progress::kMoved : Progress::kStuck;
}

Cta& Cluster::any_cta() {
  return *ctas_[size_ == 1 ? 0 : ctas_[0]->work.random().below(size_)];
}

// A random warp runs a random number of instructions, or a random piece of work takes effect.
template <bool kObserved>
Cluster::Progress Cluster::sweep_at_random() {
  const std::uint32_t attempts = 8 * size_ * launch_->warps();
  bool polled = false;
  for (std::uint32_t idle = 0; idle < attempts; ++idle) {
    Cta& cta = any_cta();
    if (cta.work.random().below(3) == 0 && cta.work.run_one()) {
      idle_sweeps_ = 0;
      return Progress::kMoved;
    }
    const Warp::Progress progress = cta.run_any_warp<kObserved>();
    if (all_exited()) {
      run_out();
      return Progress::kFinished;
    }
    if (progress == Warp::Progress::kMoved) {
      idle_sweeps_ = 0;
      return Progress::kMoved;
    }
    if (progress == Warp::Progress::kSliceEnded) return Progress::kMoved;
    polled |= progress == Warp::Progress::kPolled;
  }
  // Unlucky draws must not pass for a deadlock: everyone once, in order.
  if (const Progress progress = sweep_in_order<kObserved>(); progress != Progress::kStuck) return progress;
  return polled && ++idle_sweeps_ < kMostIdleSweeps ? Progress::kMoved : Progress::kStuck;
}

void Cluster::fault_stuck() const {
  const Dim3 first = ctas_[0]->index();
  std::string text =
      fmt::format("deadlock in {}, {}CTA ({}, {}, {}){}: no warp can go on and no asynchronous work is left.",
                  launch_->program->name, size_ == 1 ? "" : "cluster of ", first.x, first.y, first.z,
                  size_ == 1 ? "" : fmt::format(" and {} more", size_ - 1));
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (launch_->observer != nullptr) launch_->observer->stuck(*ctas_[rank]);
    text += ctas_[rank]->describe_waits(size_ == 1 ? "" : fmt::format("CTA rank {}, ", rank));
  }
  throw Fault(text);
}

}  // namespace flashback::emulator
