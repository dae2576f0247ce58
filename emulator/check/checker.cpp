#include "emulator/check/checker.h"

#include <algorithm>
#include <bit>

#include "emulator/check/words.h"

namespace flashback::emulator::checking {

using Kind = Operation::Kind;

// ---- beginnings and ends

void Checker::launch_began(const Program& program) {
  program_ = &program;
  findings_.begin_launch(program.name);
  forms_ = forms_of(program);
  operations_.clear();
  races_.begin_launch(program);
  memory_order_.begin_launch();
  mbarriers_.begin_launch(program);
  barriers_.begin_launch(program);
  products_.begin_launch(program, forms_);
  first_operation_ += places_.size();
  places_.clear();
}

void Checker::cta_began(const Cta& cta) {
  std::unique_ptr<CtaState>& state = ctas_[&cta];
  if (state == nullptr) state = std::make_unique<CtaState>();
  state->cta = &cta;
  state->number = cta.number();
  const std::size_t warps = cta.warps().size();
  state->warps.resize(warps);
  for (std::size_t w = 0; w < warps; ++w) {
    WarpState& warp = state->warps[w];
    warp = {};
    warp.threads.reset(static_cast<Agent>(32 * w), cta.warps()[w].live());
    products_.begin_warp(warp);
  }
  state->operations = &operations_[state->number];
  state->shared.resize((on_rank(cta.shared_end(), 0) + kPieceBytes - 1) / kPieceBytes);
  state->columns.resize(std::size_t{4} * TensorMemory::kColumns);
  for (std::vector<Piece>* pieces : {&state->shared, &state->columns}) {
    for (Piece& piece : *pieces) piece.clear();
  }
  state->mbarriers.clear();
  for (BarrierState& barrier : state->barriers) barrier = {};
  state->next_agent = state->first_mbarrier();
  barriers_.cluster_began(cta.cluster());
  state->sum = {};
  state->products = state->commits = 0;
}

void Checker::warp_ended(const Warp& warp) {
  CtaState& state = state_of(warp);
  ++state.ended_warps;
  for (const std::uint32_t place : warp_of(warp).open) {
    const OperationState& operation = state.operation(place);
    if (operation.kind != Kind::kBulkStore && operation.kind != Kind::kBulkReduce) continue;
    if (!strict_ || operation.read_ended != 0) continue;
    findings_.add("exit", Severity::kAdvice, source_key(*program_, operation.step), [&] {
      return fmt::format(
          "{}: {} ({}) has not been waited for when its warp exits; the CTA's shared memory may go while it "
          "reads. "
          "A cp.async.bulk.wait_group.read would keep it.",
          cta_words(*state.cta), operation_words(operation), step_words(*program_, *operation.step));
    });
  }
}

void Checker::cta_ended(const Cta& cta) {
  CtaState& state = state_of(cta);
  const bool whole = state.ended_warps == state.warps.size();  // else a fault ended it
  state.ended_warps = 0;
  if (!whole) return;
  Clock known;
  for (const WarpState& warp : state.warps) {
    warp.threads.each_known(kAllLanes,
                            [&](const std::shared_ptr<Knowledge>& k, LaneMask) { known.join(k->ordered); });
  }
  // A product is known to be over where its columns are freed.
  for (const OperationState& operation : *state.operations) {
    if (operation.kind != Kind::kBulkLoad) continue;
    const bool is_known = std::any_of(operation.told.begin(), operation.told.end(), [&](const auto& told) {
      return told.cta != state.number || known.at(told.agent) >= told.time;
    });
    if (is_known) continue;
    findings_.add("exit", Severity::kError, source_key(*program_, operation.step), [&] {
      return fmt::format("{}: {} ({}) is under way when the CTA exits: no thread has waited for its end.",
                         cta_words(cta), operation_words(operation), step_words(*program_, *operation.step));
    });
  }
}

// ---- instructions

void Checker::executed(const Warp& warp, const Step& step, LaneMask mask) {
  const Form& form = form_of(step);
  CtaState& state = state_of(warp);
  WarpState& mine = warp_of(warp);
  switch (form.kind) {
    case Form::Kind::kWarpSync:
      mine.threads.synchronise(mask);
      break;
    case Form::Kind::kProxyFence:
      mine.threads.fence_proxy(mask);
      break;
    case Form::Kind::kInitFence:
      mine.threads.fence_initialised(mask);
      break;
    case Form::Kind::kMemoryFence:
      MemoryOrder::fence(state, mine, mask, form);
      break;
    case Form::Kind::kFenceBeforeSync:
      mine.threads.fence_before_sync(mask);
      break;
    case Form::Kind::kFenceAfterSync:
      mine.threads.fence_after_sync(mask);
      break;
    case Form::Kind::kBulkCommit:
      for (LaneMask rest = mask; rest != 0; rest &= rest - 1) ++mine.bulk_groups[std::countr_zero(rest)];
      break;
    case Form::Kind::kCopyCommit:
      for (LaneMask rest = mask; rest != 0; rest &= rest - 1) ++mine.copy_groups[std::countr_zero(rest)];
      break;
    case Form::Kind::kProductCommit:
      mine.product_groups.push_back(mine.products);
      break;
    case Form::Kind::kBulkWait:
    case Form::Kind::kBulkWaitRead:
    case Form::Kind::kCopyWait:
    case Form::Kind::kCopyWaitAll:
      wait_groups(state, mine, form, step, mask);
      break;
    case Form::Kind::kProductWait: {
      // A wgmma-group is one of the warpgroup: whoever has waited for it knows of the other warps' products
      // too (ISA 9.7.15.7.2).
      const auto allowed = static_cast<std::size_t>(step.immediate);
      if (mine.product_groups.size() <= allowed) break;
      mine.threads.learn(state.warpgroup(mine.threads.first()), *(mine.product_groups.end() - 1 - allowed));
      break;
    }
    default:
      break;
  }
  products_.executed(state, mine, step, form.kind);
  ++mine.executed;
}

// The operations that the wait covers are over for the threads that waited.
void Checker::wait_groups(CtaState& state, WarpState& warp, const Form& form, const Step& step,
                          LaneMask mask) {
  const auto allowed = static_cast<std::uint32_t>(step.immediate);
  const Time now = warp.threads.now();
  std::erase_if(warp.open, [&](std::uint32_t place) {
    OperationState& operation = state.operation(place);
    if ((operation.lanes & ~mask) != 0) return false;
    const int lane = std::countr_zero(operation.lanes);
    bool is_read = false;
    switch (operation.kind) {
      case Kind::kBulkStore:
      case Kind::kBulkReduce:
        is_read = form.kind == Form::Kind::kBulkWaitRead;
        if (!is_read && form.kind != Form::Kind::kBulkWait) return false;
        if (operation.group + allowed >= warp.bulk_groups[lane]) return false;
        break;
      case Kind::kCopy:
        if (form.kind == Form::Kind::kCopyWaitAll) break;
        if (form.kind != Form::Kind::kCopyWait || operation.group + allowed >= warp.copy_groups[lane])
          return false;
        break;
      default:
        return false;
    }
    if (operation.read_ended == 0) operation.read_ended = now;
    if (is_read) return false;
    operation.ended = now;
    return true;
  });
}

// ---- accesses

void Checker::accessed(const Warp& warp, const Step& step, const LaneAccess& lanes) {
  CtaState& state = state_of(warp);
  Threads& threads = warp_of(warp).threads;
  CtaState* owner = lanes.owner == nullptr ? nullptr : &state_of(*lanes.owner);
  Access access;
  access.state = &state;
  access.step = &step;
  access.reads = lanes.use != Use::kWrite;
  access.writes = lanes.use != Use::kRead;
  const Form& form = form_of(step);
  access.strong = form.strong;
  access.sums_floats = form.sums_floats;
  for (LaneMask rest = form.strong ? lanes.lanes : 0; rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    const std::uint64_t space = owner == nullptr ? 0 : (owner->number + 1) << 48;
    memory_order_.access(state, warp_of(warp), LaneMask{1} << l, space ^ lanes.addresses[l], form,
                         access.reads, access.writes);
  }
  threads.each_known(lanes.lanes, [&](const std::shared_ptr<Knowledge>& known, LaneMask of_it) {
    access.view = {known, threads.first(), 0, threads.now()};
    while (of_it != 0) {
      // Lanes at one address together.
      const std::uint64_t address = lanes.addresses[std::countr_zero(of_it)];
      access.view.lanes = 0;
      for (LaneMask rest = of_it; rest != 0; rest &= rest - 1) {
        const int l = std::countr_zero(rest);
        if (lanes.addresses[l] != address) break;
        access.view.lanes |= LaneMask{1} << l;
      }
      of_it &= ~access.view.lanes;
      races_.bytes(access, owner, address, lanes.bytes);
    }
    access.view.lanes = lanes.lanes;
    races_.report(access);
  });
}

void Checker::issued(const Operation& operation) {
  CtaState& state = state_of(*operation.warp);
  WarpState& warp = warp_of(*operation.warp);
  OperationState mine;
  mine.step = operation.step;
  mine.kind = operation.kind;
  mine.view = warp.threads.issue(operation.lanes);
  mine.first = warp.threads.first();
  mine.lanes = operation.lanes;
  mine.instruction = warp.executed;
  const int lane = std::countr_zero(operation.lanes);
  const auto place = static_cast<std::uint32_t>(state.operations->size() + 1);
  switch (operation.kind) {
    case Kind::kProduct:
      mine.told = {{state.number, state.tensor_core(), ++state.products}};
      break;
    case Kind::kCommit:
      ++state.commits;
      mine.told = {{state.number, state.tensor_core(), state.products}};
      break;
    case Kind::kBulkStore:
    case Kind::kBulkReduce:
      mine.group = warp.bulk_groups[lane];
      warp.open.push_back(place);
      break;
    case Kind::kCopy:
      mine.group = warp.copy_groups[lane];
      warp.open.push_back(place);
      break;
    case Kind::kCopyArrival:
      mine.group = place;
      break;
    case Kind::kWarpProduct:
      mine.told = {{state.number, state.warpgroup(mine.first), ++warp.products}};
      break;
    default:
      break;
  }
  state.operations->push_back(std::move(mine));
  places_.resize(operation.number - first_operation_ + 1);
  places_.back() = {&state, place};
}

Access Checker::operation_access(std::uint64_t operation, Use use) {
  const Place place = place_of(operation);
  const OperationState& mine = place.state->operation(place.index);
  Access access;
  access.state = place.state;
  access.step = mine.step;
  access.view = mine.view;
  access.operation = place.index;
  access.kind = mine.kind;
  access.reads = use != Use::kWrite;
  access.writes = use != Use::kRead;
  access.async_proxy = !is_generic(mine.kind);
  return access;
}

void Checker::accessed(const OperationAccess& bytes) {
  Access access = operation_access(bytes.operation, bytes.use);
  access.view.lanes &= bytes.lanes;
  OperationState& mine = access.state->operation(access.operation);
  if ((mine.kind == Kind::kBulkReduce || mine.kind == Kind::kPeerStore) && bytes.use == Use::kReadWrite) {
    access.reads = false;
    access.strong = true;
    access.sums_floats = form_of(*mine.step).sums_floats;
  }
  CtaState* owner = bytes.owner == nullptr ? nullptr : &state_of(*bytes.owner);
  constexpr std::size_t kAhead = 4;  // ranges whose pieces are on their way to the cache
  for (std::size_t r = 0; r < bytes.ranges.size(); ++r) {
    if (owner != nullptr && r + kAhead < bytes.ranges.size()) owner->prefetch(bytes.ranges[r + kAhead].begin);
    races_.bytes(access, owner, bytes.ranges[r].begin, bytes.ranges[r].bytes);
  }
  races_.report(access);
}

void Checker::accessed(const ColumnAccess& columns) {
  Access access = operation_access(columns.operation, columns.use);
  OperationState& mine = access.state->operation(access.operation);
  CtaState& owner = state_of(*columns.owner);
  if (mine.kind == Kind::kProduct && access.writes) {
    mine.accumulator = columns.first << 16 | columns.columns;
    if (owner.sum.goes_on(*access.state, columns)) {
      access.state->operation(owner.sum.product).told = mine.told;
      return;
    }
    owner.sum = {access.state, access.operation, access.state->commits, columns};
  } else if (owner.sum.overlaps(columns)) {
    owner.sum = {};
  }
  races_.columns(access, owner, columns.first, columns.columns, columns.lanes);
  races_.report(access);
}

void Checker::ended(std::uint64_t operation) {
  const Place place = place_of(operation);
  OperationState& mine = place.state->operation(place.index);
  switch (mine.kind) {
    case Kind::kTensorLoad:
    case Kind::kTensorStore:
      mine.ended = mine.read_ended = place.state->warps[mine.first / 32].threads.now();
      break;
    case Kind::kBulkLoad:
    case Kind::kPeerCopy:
    case Kind::kPeerStore:
    case Kind::kLaunchRequest:
    case Kind::kCommit:
    case Kind::kCopyArrival:
      return;  // what they tell takes the view
    default:
      break;
  }
  mine.view.known = nullptr;
}

// ---- synchronisation

void Checker::mbarrier(const MbarrierEvent& event) {
  CtaState& by = state_of(*event.warp);
  CtaState& owner = state_of(*event.owner);
  OperationState* operation = nullptr;
  if (event.operation != 0) {
    const Place place = place_of(event.operation);
    operation = &place.state->operation(place.index);
    if (event.kind == MbarrierEvent::Kind::kComplete) {
      const MbarrierState& state = owner.mbarriers[event.address];
      const Agent agent = state.agent + (place.state == &owner ? 0 : 1);
      operation->told.push_back({owner.number, agent, state.phase + 1});
    }
  }
  mbarriers_.event(owner, by, event, form_of(*event.step), operation);
  // In a cluster an operation may tell several mbarriers.
  if (operation != nullptr && operation->kind != Kind::kCopyArrival && owner.cluster() == 1)
    operation->view.known = nullptr;
  if (event.kind == MbarrierEvent::Kind::kInit || event.kind == MbarrierEvent::Kind::kInvalidate) {
    Piece& piece = owner.shared[event.address / kPieceBytes];
    const std::uint32_t bytes = 0xffu << event.address % kPieceBytes;
    piece.written |= bytes;
    piece.mbarriers =
        event.kind == MbarrierEvent::Kind::kInit ? piece.mbarriers | bytes : piece.mbarriers & ~bytes;
  }
}

void Checker::barrier_joined(const Warp& warp, const Step& step, std::uint32_t id, std::uint32_t,
                             std::uint32_t generation) {
  barriers_.joined(state_of(warp), static_cast<std::uint32_t>(warp.index()), step, id, generation);
}

void Checker::barrier_passed(const Warp& warp, const Step&, std::uint32_t id, std::uint32_t generation) {
  barriers_.passed(state_of(warp), static_cast<std::uint32_t>(warp.index()), id, generation);
}

void Checker::cluster_barrier_joined(const Warp& warp, const Step& step, std::uint32_t generation) {
  barriers_.cluster_joined(state_of(warp), static_cast<std::uint32_t>(warp.index()), generation,
                           form_of(step).relaxed);
}

void Checker::cluster_barrier_passed(const Warp& warp, const Step&, std::uint32_t generation) {
  barriers_.cluster_passed(state_of(warp), static_cast<std::uint32_t>(warp.index()), generation);
}

// ---- tensor memory

void Checker::columns_allocated(const Warp& warp, const Step&, std::uint32_t first, std::uint32_t columns) {
  state_of(warp).forget_columns(first, columns);
  warp_of(warp).threads.synchronise(kAllLanes);
}

// Whoever frees columns must know that nobody uses them any more, as if it overwrote them.
void Checker::columns_released(const Warp& warp, const Step& step, std::uint32_t first,
                               std::uint32_t columns) {
  CtaState& state = state_of(warp);
  Threads& threads = warp_of(warp).threads;
  Access access;
  access.state = &state;
  access.step = &step;
  access.view = threads.issue(kAllLanes);
  access.writes = true;
  constexpr LaneMask kWhole[4] = {kAllLanes, kAllLanes, kAllLanes, kAllLanes};
  races_.columns(access, state, first, columns, kWhole);
  races_.report(access);
  state.forget_columns(first, columns);
}

}  // namespace flashback::emulator::checking
