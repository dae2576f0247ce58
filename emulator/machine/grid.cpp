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

// Which CTA is the n-th to start.
class StartOrder {
 public:
  explicit StartOrder(const LaunchState& launch) : grid_(launch.grid) {
    if (!launch.schedule.shuffle_ctas) return;
    order_.resize(launch.ctas());
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    Random random(launch.schedule.seed);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }
  Dim3 operator[](std::uint64_t number) const {
    const std::uint64_t linear = order_.empty() ? number : order_[number];
    return {static_cast<std::uint32_t>(linear % grid_.x),
            static_cast<std::uint32_t>(linear / grid_.x % grid_.y),
            static_cast<std::uint32_t>(linear / grid_.x / grid_.y)};
  }

 private:
  Dim3 grid_;
  std::vector<std::uint64_t> order_;  // empty: ascending
};

// The failure of the CTA with the lowest number, whichever thread meets its own first.
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

void add(GridTotals& totals, const Cta& cta) {
  totals.warp_instructions += cta.executed();
  totals.matrix_instructions += cta.work.matrix_instructions();
  totals.ctas += 1;
}

void grow(CtaPool& pool, std::size_t count) {
  while (pool.size() < count) pool.push_back(std::make_unique<Cta>());
}

GridTotals run_independent(LaunchState& launch, int threads, CtaPool& pool) {
  const StartOrder order(launch);
  const std::uint64_t ctas = launch.ctas();
  const auto workers =
      static_cast<std::size_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), ctas));
  grow(pool, workers);
  ReductionOrder reductions(4 * workers);
  launch.reductions = &reductions;

  std::atomic<std::uint64_t> next{0};
  FirstFailure failure;
  std::vector<GridTotals> totals(workers);
  const auto work = [&](std::size_t worker) {
    Cta& cta = *pool[worker];
    for (std::uint64_t number; (number = next++) < ctas;) {
      reductions.begin(number);
      if (failure.before(number)) {
        reductions.finish(number, {});
        continue;
      }
      try {
        cta.start(launch, order[number], number);
        Cta::Progress progress;
        while ((progress = cta.sweep()) == Cta::Progress::kMoved) {
        }
        if (progress == Cta::Progress::kStuck) cta.fault_stuck();
        add(totals[worker], cta);
      } catch (...) {
        failure.note(number, std::current_exception());
      }
      cta.finish();
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

// The resident CTAs take turns, so that one that waits for another's flag gets it. Effects are immediate.
GridTotals run_together(LaunchState& launch, CtaPool& pool) {
  const StartOrder order(launch);
  const std::uint64_t ctas = launch.ctas();
  const std::uint64_t residents =
      std::min<std::uint64_t>(ctas, std::uint64_t{resident_ctas(launch)} * launch.multiprocessors);
  grow(pool, residents);
  GridTotals totals;
  std::vector<Cta*> running;
  std::uint64_t next = 0;
  const auto start_next = [&](Cta& cta) {
    cta.start(launch, order[next], next);
    ++next;
  };
  for (std::uint64_t r = 0; r < residents; ++r) {
    start_next(*pool[r]);
    running.push_back(pool[r].get());
  }
  while (!running.empty()) {
    bool moved = false;
    for (std::size_t r = 0; r < running.size();) {
      Cta& cta = *running[r];
      const Cta::Progress progress = cta.sweep();
      moved |= progress != Cta::Progress::kStuck;
      if (progress != Cta::Progress::kFinished) {
        ++r;
        continue;
      }
      add(totals, cta);
      cta.finish();
      if (next < ctas) {
        start_next(cta);
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

GridTotals run_grid(LaunchState& launch, int threads, CtaPool& pool) {
  launch.registers = StartRegisters(launch);
  return launch.program->communicates ? run_together(launch, pool) : run_independent(launch, threads, pool);
}

}  // namespace flashback::emulator
