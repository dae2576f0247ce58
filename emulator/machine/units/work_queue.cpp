#include "emulator/machine/units/work_queue.h"

#include <algorithm>

#include "emulator/machine/cta.h"

namespace flashback::emulator {

void WorkQueue::reset(const Schedule& schedule, std::uint64_t seed) {
  schedule_ = schedule;
  random_ = Random(seed);
  threads_.assign(std::size_t{32} * cta_.launch().warps(), {});
  loads_.clear();
  stores_.clear();
  matrix_.clear();
  copies_.clear();
  peer_stores_.clear();
  requests_.clear();
  matrix_instructions_ = 0;
}

template <class Work>
void WorkQueue::take_effect(const Work& work) {
  try {
    perform(cta_, work);
  } catch (const Misuse& misuse) {
    throw Fault(misuse.what() + cta_.where(work.by.warp, *work.by.step));
  }
}

void WorkQueue::submit(const Transfer& transfer) {
  if (schedule_.completion == Completion::kEager) {
    perform(cta_, transfer);
  } else if (signals_mbarrier(transfer.kind)) {
    loads_.push_back(transfer);
  } else {
    stores_.push_back(transfer);
  }
}

void WorkQueue::submit(const MatrixOperation& operation) {
  matrix_instructions_ += operation.kind == MatrixOperation::Kind::kMultiply;
  if (schedule_.completion == Completion::kEager) {
    perform(cta_, operation);
  } else {
    matrix_.push_back(operation);
  }
}

void WorkQueue::submit(const ElementCopies& copies) {
  if (schedule_.completion == Completion::kEager) {
    perform(cta_, copies);
  } else {
    copies_.push_back(copies);
  }
}

void WorkQueue::submit(const PeerStore& store) {
  if (schedule_.completion == Completion::kEager) {
    perform(cta_, store);
  } else {
    peer_stores_.push_back(store);
  }
}

void WorkQueue::submit(const LaunchRequest& request) {
  if (schedule_.completion == Completion::kEager) {
    perform(cta_, request);
  } else {
    requests_.push_back(request);
  }
}

template <class Queue>
void WorkQueue::run(Queue& queue, std::size_t index) {
  const auto work = queue[index];
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
  take_effect(work);
}

// Lazy: matrix work first, since others wait for its commits; what nobody may ever wait for, stores, last.
bool WorkQueue::run_one() {
  if (schedule_.completion == Completion::kRandom) return run_random();
  if (!matrix_.empty()) {
    run(matrix_, 0);
  } else if (!copies_.empty()) {
    run(copies_, 0);
  } else if (!loads_.empty()) {
    run(loads_, 0);
  } else if (!peer_stores_.empty()) {
    run(peer_stores_, 0);
  } else if (!requests_.empty()) {
    run(requests_, 0);
  } else if (!stores_.empty()) {
    run(stores_, 0);
  } else {
    return false;
  }
  return true;
}

bool WorkQueue::run_random() {
  const auto products = static_cast<std::size_t>(std::count_if(
      cta_.warps().begin(), cta_.warps().end(), [](const Warp& w) { return !w.products.pending.empty(); }));
  const std::size_t choices = products + loads_.size() + peer_stores_.size() + !requests_.empty() +
                              !matrix_.empty() + !copies_.empty() + !stores_.empty();
  if (choices == 0) return false;
  std::size_t choice = random_.below(choices);
  if (choice < products) {
    run_product(choice);
    return true;
  }
  choice -= products;
  if (choice < loads_.size()) {
    run(loads_, choice);
    return true;
  }
  choice -= loads_.size();
  if (choice < peer_stores_.size()) {
    run(peer_stores_, choice);
    return true;
  }
  choice -= peer_stores_.size();
  if (!requests_.empty() && choice-- == 0) {
    run(requests_, 0);
  } else if (!matrix_.empty() && choice-- == 0) {
    run(matrix_, 0);
  } else if (!copies_.empty() && choice-- == 0) {
    run(copies_, 0);
  } else {
    // Any thread's oldest one.
    std::size_t index = random_.below(stores_.size());
    for (std::size_t earlier = 0; earlier < index; ++earlier) {
      if (stores_[earlier].by.warp == stores_[index].by.warp &&
          stores_[earlier].by.lane == stores_[index].by.lane) {
        index = earlier;
      }
    }
    run(stores_, index);
  }
  return true;
}

// Of the n-th warp that has one.
void WorkQueue::run_product(std::size_t n) {
  for (Warp& warp : cta_.warps()) {
    if (warp.products.pending.empty()) continue;
    if (n-- != 0) continue;
    complete_oldest_product(warp);
    return;
  }
}

bool WorkQueue::bulk_groups_done(int warp, int lane, std::uint32_t allowed) const {
  const std::uint32_t committed = thread(warp, lane).bulk_groups;
  for (const Transfer& store : stores_) {
    if (store.by.warp == warp && store.by.lane == lane && store.group + allowed < committed) return false;
  }
  return true;
}

bool WorkQueue::copy_groups_done(int warp, int lane, std::uint32_t allowed) const {
  const std::uint32_t committed = thread(warp, lane).copy_groups;
  for (const ElementCopies& copies : copies_) {
    if (copies.by.warp == warp && !copies.is_arrival && (copies.mask >> lane & 1) != 0 &&
        copies.group[lane] + allowed < committed) {
      return false;
    }
  }
  return true;
}

}  // namespace flashback::emulator
