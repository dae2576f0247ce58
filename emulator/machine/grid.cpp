#include "emulator/machine/grid.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

namespace flashback::emulator {
namespace {

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

// The failure of the cluster with the lowest number, whichever thread meets its own first.
class FirstFailure {
 public:
  bool before(std::uint64_t number) const { return number_.load(std::memory_order_relaxed) < number; }
  void note(std::uint64_t number, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (number >= number_) return;
    number_ = number;
    failure_ = std::move(failure);
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::atomic<std::uint64_t> number_{std::numeric_limits<std::uint64_t>::max()};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

void add(GridTotals& totals, const Cluster& cluster) {
  totals.warp_instructions += cluster.executed();
  totals.matrix_instructions += cluster.matrix_instructions();
  totals.ctas += cluster.size();
}

void grow(ClusterPool& pool, std::size_t count) {
  while (pool.size() < count) pool.push_back(std::make_unique<Cluster>());
}

GridTotals run_independent(LaunchState& launch, int threads, ClusterPool& pool) {
  const StartOrder order(launch);
  const std::uint64_t clusters = order.count();
  const auto workers =
      static_cast<std::size_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), clusters));
  grow(pool, workers);
  ReductionOrder reductions(4 * workers);
  launch.reductions = &reductions;

  std::atomic<std::uint64_t> next{0};
  FirstFailure failure;
  std::vector<GridTotals> totals(workers);
  const auto work = [&](std::size_t worker) {
    Cluster& cluster = *pool[worker];
    for (std::uint64_t number; (number = next++) < clusters;) {
      reductions.begin(number);
      if (failure.before(number)) {
        reductions.finish(number, {});
        continue;
      }
      try {
        cluster.start(launch, order[number], number);
        Cluster::Progress progress;
        while ((progress = cluster.sweep()) == Cluster::Progress::kMoved) {
        }
        if (progress == Cluster::Progress::kStuck) cluster.fault_stuck();
        add(totals[worker], cluster);
      } catch (...) {
        failure.note(number, std::current_exception());
      }
      cluster.finish();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t w = 1; w < workers; ++w) others.emplace_back(work, w);
  work(0);
  for (std::thread& thread : others) thread.join();
  launch.reductions = nullptr;
  failure.rethrow();

  GridTotals sum;
  for (const GridTotals& part : totals) {
    sum.warp_instructions += part.warp_instructions;
    sum.matrix_instructions += part.matrix_instructions;
    sum.ctas += part.ctas;
  }
  return sum;
}

// The resident clusters take turns, so that one that waits for another's flag gets it. Effects are immediate.
GridTotals run_together(LaunchState& launch, ClusterPool& pool) {
  const StartOrder order(launch);
  const std::uint64_t clusters = order.count();
  const std::uint64_t residents = std::min(clusters, resident_clusters(launch));
  grow(pool, residents);
  GridTotals totals;
  std::vector<Cluster*> running;
  std::uint64_t next = 0;
  const auto start_next = [&](Cluster& cluster) {
    cluster.start(launch, order[next], next);
    ++next;
  };
  for (std::uint64_t r = 0; r < residents; ++r) {
    start_next(*pool[r]);
    running.push_back(pool[r].get());
  }
  while (!running.empty()) {
    bool moved = false;
    for (std::size_t r = 0; r < running.size();) {
      Cluster& cluster = *running[r];
      const Cluster::Progress progress = cluster.sweep();
      moved |= progress != Cluster::Progress::kStuck;
      if (progress != Cluster::Progress::kFinished) {
        ++r;
        continue;
      }
      add(totals, cluster);
      cluster.finish();
      if (next < clusters) {
        start_next(cluster);
        ++r;
      } else {
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(r));
      }
    }
    if (!moved) running.front()->fault_stuck();
  }
  return totals;
}

}  // namespace

std::uint32_t resident_ctas(const LaunchState& launch) {
  constexpr std::uint32_t kThreads = 2048, kShared = 228 * 1024, kSystemShared = 1024, kSlots = 32;
  const std::uint32_t by_threads = kThreads / (32 * launch.warps());
  const std::uint32_t by_shared = kShared / (launch.shared_bytes() + kSystemShared);
  return std::max(1u, std::min({by_threads, by_shared, kSlots}));
}

std::uint64_t resident_clusters(const LaunchState& launch) {
  const std::uint64_t ctas = std::uint64_t{resident_ctas(launch)} * launch.multiprocessors;
  return std::max<std::uint64_t>(1, ctas / launch.cluster_size());
}

GridTotals run_grid(LaunchState& launch, int threads, ClusterPool& pool) {
  launch.registers = StartRegisters(launch);
  return launch.program->communicates ? run_together(launch, pool) : run_independent(launch, threads, pool);
}

}  // namespace flashback::emulator
