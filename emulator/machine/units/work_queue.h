// Asynchronous work of a CTA that was issued and has not taken effect, and the policy that chooses what takes
// effect next.
//
// Order: tcgen05.mma and commit in issue order; the bulk stores and reductions of a thread in the order of
// its groups; cp.async of a warp in issue order; requests of launch control in issue order; loads and
// stores to peers in any order. The products that a
// warp has issued with wgmma.mma_async are its own (Warp::products); here only their random moments are
// drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/machine/units/tensor_core.h"
#include "emulator/machine/units/transfer.h"

namespace flashback::emulator {

// Small reproducible generator (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

// cp.async of one warp instruction, or the arrival that follows earlier ones.
struct ElementCopies {
  Issuer by;
  LaneMask mask = 0;
  bool is_arrival = false;
  std::uint32_t bytes = 0;
  std::uint32_t shared[32];      // destination, or mbarrier
  std::uint32_t from_bytes[32];  // source bytes; the rest is zeros
  Address global[32];
  std::uint32_t group[32];
};
void perform(Cta& cta, const ElementCopies& copies);

// st.async or red.async of one thread.
struct PeerStore {
  Issuer by;
  std::uint32_t address = 0, mbarrier = 0;  // in one CTA
  std::uint32_t bytes = 0;
  std::byte values[16] = {};
  // What red.async leaves where the first finds the second; null: a store.
  std::uint64_t (*combine)(std::uint64_t value, std::uint64_t old) = nullptr;
};
// Checks of the issue. Throws Misuse.
void check(Cta& cta, const PeerStore& store);
void perform(Cta& cta, const PeerStore& store);

// clusterlaunchcontrol.try_cancel: the next cluster's launch is cancelled, and 16 bytes say which or that
// there is none.
struct LaunchRequest {
  Issuer by;
  std::uint32_t address = 0, mbarrier = 0;
  bool to_all = false;  // at these offsets in every CTA of the cluster
};
struct LaunchResponse {
  std::uint32_t first_cta[3];
  std::uint32_t cancelled;
};
// Checks of the issue. Throws Misuse.
void check(Cta& cta, const LaunchRequest& request);
void perform(Cta& cta, const LaunchRequest& request);

class WorkQueue {
 public:
  explicit WorkQueue(Cta& cta) : cta_(cta) {}
  void reset(const Schedule& schedule, std::uint64_t seed);

  void submit(const Transfer& transfer);
  void submit(const MatrixOperation& operation);
  void submit(const ElementCopies& copies);
  void submit(const PeerStore& store);
  void submit(const LaunchRequest& request);
  // Lets one piece of work take effect; false when there is none.
  bool run_one();
  // Whether work that need not be queued takes effect at once (loads and stores of tensor memory).
  bool at_once() {
    return schedule_.completion == Completion::kEager ||
           (schedule_.completion == Completion::kRandom && random_.next() % 2 == 0);
  }
  Random& random() { return random_; }

  // A thread's bulk groups and cp.async groups. True when all but the newest `allowed` have completed.
  void commit_bulk_group(int warp, int lane) { ++thread(warp, lane).bulk_groups; }
  bool bulk_groups_done(int warp, int lane, std::uint32_t allowed) const;
  std::uint32_t bulk_group(int warp, int lane) const { return thread(warp, lane).bulk_groups; }
  void commit_copy_group(int warp, int lane) { ++thread(warp, lane).copy_groups; }
  bool copy_groups_done(int warp, int lane, std::uint32_t allowed) const;
  std::uint32_t copy_group(int warp, int lane) const { return thread(warp, lane).copy_groups; }

  void count_matrix_instruction() { ++matrix_instructions_; }
  std::uint64_t matrix_instructions() const { return matrix_instructions_; }

 private:
  struct Thread {
    std::uint32_t bulk_groups = 0, copy_groups = 0;  // committed so far
  };
  Thread& thread(int warp, int lane) { return threads_[static_cast<std::size_t>(32 * warp + lane)]; }
  const Thread& thread(int warp, int lane) const {
    return threads_[static_cast<std::size_t>(32 * warp + lane)];
  }
  template <class Work>
  void take_effect(const Work& work);
  template <class Queue>
  void run(Queue& queue, std::size_t index);
  bool run_random();
  void run_product(std::size_t n);

  Cta& cta_;
  Schedule schedule_;
  Random random_{0};
  std::vector<Thread> threads_;
  std::vector<Transfer> loads_;
  std::deque<Transfer> stores_;
  std::deque<MatrixOperation> matrix_;
  std::deque<ElementCopies> copies_;
  std::vector<PeerStore> peer_stores_;
  std::deque<LaunchRequest> requests_;
  std::uint64_t matrix_instructions_ = 0;
};

}  // namespace flashback::emulator
