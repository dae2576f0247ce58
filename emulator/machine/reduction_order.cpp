#include "emulator/machine/reduction_order.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

namespace flashback::emulator {
namespace {

// Subnormal inputs and results are zeros of their sign while this lives.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(_mm_getcsr()) {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushSubnormals() { _mm_setcsr(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  const unsigned before_;
};

}  // namespace

// Not inlined: the compiler must not move the additions across the change of the control register.
__attribute__((noinline)) static void add(float* __restrict to, const float* __restrict from,
                                          std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

void add_floats(Address address, std::span<const float> values) {
  const FlushSubnormals flush;
  add(reinterpret_cast<float*>(address), values.data(), values.size());
}

void ReductionLog::append(Address address, std::span<const float> values) {
  begin_ = std::min(begin_, address);
  end_ = std::max(end_, address + values.size_bytes());
  if (!entries_.empty() && entries_.back().address + entries_.back().count * sizeof(float) == address) {
    entries_.back().count += values.size();
  } else {
    entries_.push_back({address, values_.size(), values.size()});
  }
  values_.insert(values_.end(), values.begin(), values.end());
}

void ReductionLog::apply() {
  for (const Entry& entry : entries_) {
    add_floats(entry.address, std::span(values_).subspan(entry.first, entry.count));
  }
  entries_.clear();
  values_.clear();
  begin_ = ~Address{0};
  end_ = 0;
}

void ReductionOrder::begin(std::uint64_t cluster) {
  if (cluster < turn_.load(std::memory_order_acquire) + window_) return;
  std::unique_lock lock(mutex_);
  turned_.wait(lock, [&] { return cluster < turn_.load(std::memory_order_relaxed) + window_; });
}

void ReductionOrder::wait_for_turn(std::uint64_t cluster) {
  if (has_turn(cluster)) return;
  std::unique_lock lock(mutex_);
  turned_.wait(lock, [&] { return turn_.load(std::memory_order_relaxed) == cluster; });
}

void ReductionOrder::finish(std::uint64_t cluster, ReductionLog&& log) {
  std::unique_lock lock(mutex_);
  finished_.emplace(cluster, std::move(log));
  // Whoever finds the turn's cluster finished applies its log; without the lock, since nobody else has that
  // turn.
  for (auto next = finished_.begin(); next != finished_.end() && next->first == turn_;
       next = finished_.begin()) {
    ReductionLog due = std::move(next->second);
    finished_.erase(next);
    lock.unlock();
    due.apply();
    lock.lock();
    turn_.fetch_add(1, std::memory_order_release);
    turned_.notify_all();
  }
}

}  // namespace flashback::emulator
