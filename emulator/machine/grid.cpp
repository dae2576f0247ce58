#include "emulator/machine/grid.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "emulator/machine/start_order.h"

namespace flashback::emulator {
namespace {

// The failure of the place with the lowest number, whichever thread meets its own first.
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

// Runs a cluster to its end.
void run(Cluster& cluster) {
  Cluster::Progress progress;
  while ((progress = cluster.sweep()) == Cluster::Progress::kMoved) {
  }
  if (progress == Cluster::Progress::kStuck) cluster.fault_stuck();
}

// Each cluster has a place of its own, and the places share nothing. Where clusters take over the work of
// others there are as many places as the GPU has, and each gets its clusters in a fixed order: which cluster
// does what depends on no timing.
GridTotals run_independent(LaunchState& launch, int threads, ClusterPool& pool) {
  const StartOrder order(launch);
  const std::uint64_t clusters = order.count();
  const std::uint64_t places =
      launch.program->cancels_launches ? std::min(clusters, resident_clusters(launch)) : clusters;
  const auto workers =
      static_cast<std::size_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), places));
  grow(pool, workers);
  ReductionOrder reductions(4 * workers);
  launch.reductions = &reductions;

  std::atomic<std::uint64_t> next{0};
  FirstFailure failure;
  std::vector<GridTotals> totals(workers);
  const auto work = [&](std::size_t worker) {
    Cluster& cluster = *pool[worker];
    for (std::uint64_t place; (place = next++) < places;) {
      reductions.begin(place);
      ClusterQueue queue(order, place, places);
      try {
        while (!failure.before(place)) {
          const std::optional<std::uint64_t> number = queue.take();
          if (!number) break;
          cluster.start(launch, *number, place, &queue);
          run(cluster);
          add(totals[worker], cluster);
          cluster.end();
        }
      } catch (...) {
        failure.note(place, std::current_exception());
        cluster.end();
      }
      reductions.finish(place, cluster.take_log());
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
  ClusterQueue queue(order, 0, 1);
  const auto start_next = [&](Cluster& cluster) {
    const std::optional<std::uint64_t> number = queue.take();
    if (number) cluster.start(launch, *number, *number, &queue);
    return number.has_value();
  };
  for (std::uint64_t r = 0; r < residents && start_next(*pool[r]); ++r) running.push_back(pool[r].get());
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
      cluster.end();
      if (start_next(cluster)) {
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
