// The order in which the global reductions of a launch take effect: cluster by cluster, in the order in which
// they start. So the sums are the same whatever the number of host threads and however these are scheduled.
//
// The oldest unfinished cluster has the turn: its reductions take effect at once. The others write theirs
// into a log, which is applied when their turn comes. No cluster starts too far ahead of the oldest, which
// bounds the logs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "device/device.h"

namespace flashback::emulator {

// Adds `values` to the floats at `address`: round to nearest even; subnormal inputs and results become zeros
// of their sign, as cp.reduce.async.bulk has it.
void add_floats(Address address, std::span<const float> values);

class ReductionLog {
 public:
  bool empty() const { return entries_.empty(); }
  void append(Address address, std::span<const float> values);
  // Adds all entries in their order and forgets them.
  void apply();
  // Whether a logged reduction may touch these bytes.
  bool touches(Address address, std::size_t bytes) const {
    return !entries_.empty() && address < end_ && begin_ < address + bytes;
  }

 private:
  struct Entry {
    Address address;
    std::size_t first, count;  // in values_
  };
  std::vector<Entry> entries_;
  std::vector<float> values_;
  Address begin_ = ~Address{0}, end_ = 0;
};

class ReductionOrder {
 public:
  // At most `window` clusters are between start and turn at once.
  explicit ReductionOrder(std::uint64_t window) : window_(window) {}

  // Clusters are numbered in start order. Waits until number `cluster` may start.
  void begin(std::uint64_t cluster);
  bool has_turn(std::uint64_t cluster) const { return turn_.load(std::memory_order_acquire) == cluster; }
  void wait_for_turn(std::uint64_t cluster);
  // Number `cluster` is done; what is left of its log is applied at its turn.
  void finish(std::uint64_t cluster, ReductionLog&& log);

 private:
  const std::uint64_t window_;
  std::atomic<std::uint64_t> turn_{0};
  std::mutex mutex_;
  std::condition_variable turned_;
  std::map<std::uint64_t, ReductionLog> finished_;  // ahead of their turn
};

}  // namespace flashback::emulator
