#include "emulator/machine/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "emulator/machine/cta.h"
#include "emulator/machine/launch_state.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator {

void Warp::start(Cta& cta, int index) {
  const LaunchState& launch = cta.launch();
  const Program& program = *launch.program;
  cta_ = &cta;
  index_ = index;
  const int threads = static_cast<int>(launch.threads()) - 32 * index;
  live_ = threads >= 32 ? kAllLanes : (LaneMask{1} << threads) - 1;
  groups_.assign(1, Group{0, live_});
  wait_ = {};
  executed_ = 0;
  pending_loads.clear();
  pending_stores.clear();
  products = {};

  constexpr std::size_t kAlignment = 64;
  register_memory_.resize(std::max(register_memory_.size(), program.register_bytes + kAlignment));
  const auto start = reinterpret_cast<std::uintptr_t>(register_memory_.data());
  registers_ = register_memory_.data() + (kAlignment - start % kAlignment) % kAlignment;
  local_memory_.assign(std::size_t{32} * program.local_bytes, std::byte{0xff});
  launch.registers.copy_to(registers_, cta, index, local_memory_.data());
}

bool Warp::local_holds(std::uint64_t address, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(local_memory_.data());
  return address >= begin && bytes <= local_memory_.size() && address - begin <= local_memory_.size() - bytes;
}

void Warp::diverge(std::uint32_t target, LaneMask taken) {
  groups_[current_] = {pc_, active_ & ~taken};
  groups_.push_back({target, taken});
  stop_ = Stop::kDiverged;
}

void Warp::exit(LaneMask lanes) {
  live_ &= ~lanes;
  active_ &= ~lanes;
  if (active_ == 0) stop_ = Stop::kExited;
}

void Warp::merge_groups() {
  for (std::size_t a = 0; a < groups_.size(); ++a) {
    for (std::size_t b = a + 1; b < groups_.size();) {
      if (groups_[a].pc == groups_[b].pc) {
        groups_[a] = {groups_[a].pc, groups_[a].mask | groups_[b].mask};
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(b));
      } else {
        ++b;
      }
    }
  }
}

// A barrier that has not moved on need not be asked again.
bool Warp::waits_in_vain(const Wait& wait) const {
  return wait.kind == Wait::Kind::kBarrier && !cta_->barriers.passed(wait.what, wait.when);
}

template <bool kObserved>
void Warp::run_group(std::uint32_t& slice) {
  const Step* code = cta_->launch().program->code.data();
  const std::uint32_t began_with = slice;
  while (true) {
    const Step& step = code[pc_];
    LaneMask mask = active_;
    if (step.guard != kNone) mask &= step.guard_negated ? ~predicate(step.guard) : predicate(step.guard);
    ++pc_;
    --slice;
    if (mask != 0) {
      if (step.touches_pending_load && !pending_loads.empty()) complete_loads_used_by(*this, step);
      if (step.touches_pending_product && !products.pending.empty()) check_touch(*this, step);
      step.body(*this, step, mask);
      if constexpr (kObserved) {
        if (stop_ != Stop::kWaits) cta_->launch().observer->executed(*this, step, mask);
      }
    }
    if (stop_ != Stop::kNone) break;
    if (wait_.kind != Wait::Kind::kNothing) wait_ = {};
    if (pc_ >= merge_pc_) {
      stop_ = Stop::kMerges;
      break;
    }
    if (slice == 0) {
      stop_ = Stop::kSliceEnded;
      break;
    }
  }
  if (stop_ == Stop::kWaits) {
    ++slice;
  } else {
    wait_ = {};
  }
  executed_ += began_with - slice;
}

template <bool kObserved>
Warp::Progress Warp::run(std::uint32_t slice) {
  if (groups_.size() == 1 && waits_in_vain(groups_[0].wait)) return Progress::kNone;
  const std::uint64_t executed_before = executed_;
  bool polled = false, moved = false, slice_ended = false;
  std::uint32_t rest = slice;
  for (Group& group : groups_) group.tried = false;
  while (true) {
    // A loop that parts and meets again in every round would never end its slice.
    if (executed_ - executed_before > std::uint64_t{4} * slice) {
      slice_ended = true;
      break;
    }
    if (groups_.size() > 1) merge_groups();
    std::size_t lowest = groups_.size();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].tried) continue;
      if (lowest == groups_.size() || groups_[g].pc < groups_[lowest].pc) lowest = g;
    }
    if (lowest == groups_.size()) break;
    current_ = lowest;
    pc_ = groups_[lowest].pc;
    active_ = groups_[lowest].mask;
    wait_ = groups_[lowest].wait;
    stop_ = Stop::kNone;
    merge_pc_ = std::numeric_limits<std::uint32_t>::max();
    for (const Group& other : groups_) {
      if (other.pc > pc_) merge_pc_ = std::min(merge_pc_, other.pc);
    }
    if (rest == 0) rest = slice;
    const std::uint64_t group_before = executed_;
    try {
      run_group<kObserved>(rest);
    } catch (const Misuse& misuse) {
      fault(cta_->launch().program->code[pc_ - 1], misuse.what(), misuse.kind());
    }
    if (stop_ == Stop::kDiverged) {
      moved = true;
      continue;  // diverge() has noted both groups
    }
    Group& group = groups_[current_];
    group.pc = pc_;
    group.mask = active_;
    group.wait = wait_;
    switch (stop_) {
      case Stop::kWaits:
        group.tried = true;
        break;
      case Stop::kPolled:
        group.tried = true;
        polled = true;
        continue;
      case Stop::kYields:
        return Progress::kMoved;  // the other groups wait for this one where they would have met
      case Stop::kSliceEnded:
        group.tried = true;
        slice_ended = true;
        break;
      case Stop::kExited:
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(current_));
        for (Group& other : groups_) other.tried = false;  // they may have waited for these lanes
        break;
      default:
        break;
    }
    moved |= executed_ != group_before;
  }
  if (slice_ended) return Progress::kSliceEnded;
  if (moved) return Progress::kMoved;
  return polled || executed_ != executed_before ? Progress::kPolled : Progress::kNone;
}

template Warp::Progress Warp::run<false>(std::uint32_t);
template Warp::Progress Warp::run<true>(std::uint32_t);

void Warp::fault(const Step& step, const std::string& what, FaultKind kind) const {
  throw Fault(what + cta_->where(index_, step), kind);
}

}  // namespace flashback::emulator
