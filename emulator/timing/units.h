// The parts of an SM as the replay has them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "emulator/timing/timeline.h"

namespace flashback::emulator::timing {

// Serves first come, first served. Requests come in the order of time.
class Server {
 public:
  // When it begins to work `cycles` for who asks at `now`.
  double reserve(double now, double cycles) {
    const double start = std::max(now, free_);
    free_ = start + cycles;
    busy_ += cycles;
    return start;
  }
  double free() const { return free_; }
  double busy() const { return busy_; }

 private:
  double free_ = 0, busy_ = 0;
};

// As emulator/machine/mbarrier.h, and who waits.
struct Phases {
  std::uint32_t expected = 0, pending = 0;
  std::int64_t bytes = 0;  // to come
  std::uint32_t phase = 0;
  Actor ended_by;  // the last phase
  struct Waiter {
    std::uint16_t warp;
    std::uint32_t parity;
  };
  std::vector<Waiter> waiters;

  bool done(std::uint32_t parity) const { return (phase & 1) != parity; }
  // True when that ends a phase.
  bool arrive(std::uint32_t count, std::int64_t bytes_to_come) {
    pending -= std::min(count, pending);
    bytes += bytes_to_come;
    if (pending != 0 || bytes != 0) return false;
    pending = expected;
    ++phase;
    return true;
  }
};

struct NamedBarrier {
  std::uint32_t threads = 0;  // that have arrived
  std::vector<std::uint16_t> waiting;
};

// What stands in a tensor core's queue: a product, or a commit.
struct TensorOperation {
  double ready = 0;  // when it reaches the unit
  Product product;
  bool is_commit = false;
  std::uint32_t mbarrier = 0;  // of a commit
  Actor actor;
};

// The tensor core: products of a queue in their order, queues in the order of arrival. The A of a product is
// read under the product before it, B under its own.
struct TensorCore {
  enum class State : std::uint8_t { kIdle, kReadingA, kStarting, kReadingB };
  State state = State::kIdle;
  bool asleep = true;  // nothing is queued, and no item of the agenda will look
  std::vector<std::deque<TensorOperation>> queues;
  std::size_t queue = 0;  // that is being served
  double bytes_left = 0, began = 0, end = 0, operands_end = 0, busy = 0;

  // The queue whose first operation came first; queues.size() when all are empty.
  std::size_t next() const {
    std::size_t best = queues.size();
    for (std::size_t q = 0; q < queues.size(); ++q) {
      if (queues[q].empty()) continue;
      if (best == queues.size() || queues[q].front().ready < queues[best].front().ready) best = q;
    }
    return best;
  }
};

// Bulk copies of a thread that lead out of the SM, by group.
struct OutgoingGroups {
  struct Group {
    std::uint32_t reading = 0, unfinished = 0;  // copies
  };
  std::vector<Group> groups = {Group{}};  // the last one is open
  bool met(std::uint32_t allowed, bool reads_only) const {
    std::uint32_t open = 0;
    for (std::size_t g = 0; g + 1 < groups.size(); ++g) {
      open += (reads_only ? groups[g].reading : groups[g].unfinished) != 0;
    }
    return open <= allowed;
  }
};

// A bulk copy on its way, in pieces that share links with others.
struct Transfer {
  enum class Kind : std::uint8_t { kIn, kOut, kReduce };
  Kind kind = Kind::kIn;
  double bytes_left = 0, bytes = 0, asked = 0;
  std::uint32_t mbarrier = 0;  // of kIn
  std::uint32_t group = 0;     // of the others
  bool began = false;          // of kReduce: the chip's atomics have come to it
  bool read = false;           // the last piece has left shared memory
  Actor actor;
};

}  // namespace flashback::emulator::timing
