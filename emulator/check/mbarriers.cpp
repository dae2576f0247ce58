#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/check/synchronisation.h"
#include "emulator/check/words.h"

namespace flashback::emulator::checking {

void Mbarriers::event(CtaState& owner, CtaState& by, const MbarrierEvent& event, const Form& form,
                      OperationState* operation) {
  MbarrierState& state = owner.mbarriers[event.address];
  using Kind = MbarrierEvent::Kind;
  if (event.kind == Kind::kInit) {
    init(owner, by, event, state);
    return;
  }
  require_initialised(owner, by, event, state, operation);
  switch (event.kind) {
    case Kind::kInvalidate:
      state.in_use = false;
      break;
    case Kind::kArrive:
    case Kind::kComplete:
      arrive(owner, by, event, form, operation, state);
      break;
    case Kind::kWait:
      wait(by, event, form, state);
      break;
    default:
      break;
  }
  if (!event.ends_phase) return;
  ++state.phase;
  state.over = std::exchange(state.arriving, {});
  state.over[{owner.number, Scope::kCta}].ordered.raise(state.agent, state.phase);
  for (auto& [by, passed] : state.over) {
    if (by.cta != owner.number) passed.raise_in(owner.number, state.agent + 1, state.phase);
  }
  state.arrived_warps.clear();
}

void Mbarriers::init(CtaState& owner, CtaState& by, const MbarrierEvent& event, MbarrierState& state) {
  const Threads& threads = by.warps[static_cast<std::size_t>(event.warp->index())].threads;
  const Record& other = state.init;
  // Lanes that do the same in one instruction, which hardware does once.
  const bool together = state.in_use && other.step == event.step && other.cta == by.number &&
                        other.first == threads.first() && other.time == threads.now() &&
                        (other.lanes & event.lanes) == 0 && state.expected == event.amount;
  if (state.in_use && (strict_ || !together)) {
    const Severity severity = together ? Severity::kAdvice : Severity::kError;
    findings_.add("mbarrier", severity, source_key(*program_, event.step) + " again", [&] {
      return fmt::format("{}: {} initialises {}, which is in use ({}){}", cta_words(*by.cta),
                         lanes_words(threads.first(), event.lanes), mbarrier_words(event.address),
                         step_words(*program_, *event.step),
                         together ? ": several lanes do so in one instruction; one is enough."
                                  : "; mbarrier.inval must come first.");
    });
  }
  if (together) {
    state.init.lanes |= event.lanes;
    return;
  }
  const Agent agent = state.agent != 0 ? state.agent : std::exchange(owner.next_agent, owner.next_agent + 2);
  const std::uint32_t phase = state.phase;  // goes on, so that the times of the agent never fall
  state = {};
  state.agent = agent;
  state.phase = phase;
  state.expected = event.amount;
  state.in_use = true;
  state.init = {event.step, by.number, 0, threads.first(), event.lanes, threads.now(), 0, false};
}

// Whoever uses the object must know that it was initialised.
void Mbarriers::require_initialised(CtaState& owner, CtaState& by, const MbarrierEvent& event,
                                    const MbarrierState& state, const OperationState* operation) {
  if (!state.in_use || owner.number != by.number) return;
  const auto knows = [&](const Knowledge& known, Agent first, LaneMask lanes) {
    LaneMask rest = state.init.lanes;
    if (first == state.init.first) rest &= ~lanes;
    return known.ordered.behind(state.init.first, rest, state.init.time) == 0 ||
           known.initialised.behind(state.init.first, rest, state.init.time) == 0;
  };
  bool known_to_all = true;
  Agent first = 0;
  LaneMask lanes = event.lanes;
  if (operation != nullptr) {
    if (operation->view.known == nullptr) return;
    first = operation->first;
    known_to_all = knows(*operation->view.known, first, operation->lanes);
  } else {
    const Threads& threads = by.warps[static_cast<std::size_t>(event.warp->index())].threads;
    first = threads.first();
    threads.each_known(event.lanes, [&](const std::shared_ptr<Knowledge>& known, LaneMask of_it) {
      known_to_all &= knows(*known, first, of_it);
    });
  }
  if (known_to_all) return;
  findings_.add("mbarrier", Severity::kError, source_key(*program_, event.step) + " init", [&] {
    return fmt::format(
        "{}: {} uses {} ({}), and {} initialises it ({}); nothing orders the two. A barrier of the CTA "
        "behind the "
        "initialisation would.",
        cta_words(*by.cta), operation != nullptr ? operation_words(*operation) : lanes_words(first, lanes),
        mbarrier_words(event.address), step_words(*program_, *event.step),
        lanes_words(state.init.first, state.init.lanes), step_words(*program_, *state.init.step));
  });
}

void Mbarriers::arrive(CtaState& owner, CtaState& by, const MbarrierEvent& event, const Form& form,
                       OperationState* operation, MbarrierState& state) {
  const auto warp = static_cast<std::uint32_t>(event.warp->index());
  const Scope scope = by.number == owner.number ? Scope::kCta  // which reaches all who wait here
                      : operation == nullptr    ? form.scope
                                                : Scope::kCluster;
  Knowledge& passed = state.arriving[{by.number, scope}];
  if (operation == nullptr) {
    by.warps[warp].threads.release(event.lanes, &passed, form.relaxed);
    if (form.relaxed) {
      for (const auto& [fence, known] : by.warps[warp].at_release_fence)
        state.arriving[{by.number, std::min(fence, scope)}].join(known);
    }
  } else if (operation->kind == Operation::Kind::kCommit) {
    // Behind the products of the thread, with the fence before_thread_sync in it.
    const OperationState::Told& products = operation->told.front();
    passed.join(*operation->view.known);
    passed.published.join(operation->view.known->fenced);
    passed.ordered.raise(operation->first, operation->lanes, operation->view.now);
    passed.ordered.raise(products.agent, products.time);
    passed.published.raise(operation->first, operation->lanes, operation->view.now);
    passed.published.raise(products.agent, products.time);
  } else if (operation->kind == Operation::Kind::kCopyArrival) {
    const bool is_last_lane = event.lanes == std::bit_floor(operation->lanes);
    if (is_last_lane) tell_copies(by, warp, *operation, {owner.number, state.agent, state.phase + 1});
  } else if (operation->view.known != nullptr && !strict_) {
    // A copy comes after what its thread knew; the ISA does not promise that its end says so (8.9.1.1).
    passed.join(*operation->view.known);
    passed.ordered.raise(operation->first, operation->lanes, operation->view.now);
  }
  if (event.kind != MbarrierEvent::Kind::kArrive) return;
  state.arrived_warps.push_back(warp);
  ++state.arrivals[warp];
}

// `arrival`, a cp.async.mbarrier.arrive, speaks of all copies that its lanes have issued before
// (ISA 9.7.13.15.15), those too that an earlier one has told of at another mbarrier.
void Mbarriers::tell_copies(CtaState& by, std::uint32_t warp, const OperationState& arrival,
                            const OperationState::Told& told) {
  for (const std::uint32_t place : by.warps[warp].open) {
    OperationState& copy = by.operation(place);
    if (copy.kind != Operation::Kind::kCopy || place > arrival.group || (copy.lanes & ~arrival.lanes) != 0)
      continue;
    const bool has_told = std::any_of(copy.told.begin(), copy.told.end(), [&](const auto& earlier) {
      return earlier.cta == told.cta && earlier.agent == told.agent;
    });
    if (!has_told) copy.told.push_back(told);
  }
}

void Mbarriers::wait(CtaState& by, const MbarrierEvent& event, const Form& form, MbarrierState& state) {
  const int warp = event.warp->index();
  WarpState& waiting = by.warps[static_cast<std::size_t>(warp)];
  if (!form.relaxed) {
    acquire(waiting.threads, event.lanes, by.number, by.cluster(), state.over, form);
  } else {
    for (const auto& [source, passed] : state.over) {
      if (source.cta == by.number) waiting.threads.acquire(event.lanes, passed, true);
      waiting.seen[{source.cta, std::min(source.scope, form.scope)}].join(passed);
    }
  }
  const int waiter = std::has_single_bit(event.lanes) ? 32 * warp + std::countr_zero(event.lanes) : -1 - warp;
  const auto [place, is_first] = state.seen.try_emplace(waiter, state.phase);
  const std::uint32_t missed = state.phase - place->second;
  place->second = state.phase;
  // An even number may be meant: the waiter looks at every second phase.
  if (is_first || missed < 3 || missed % 2 == 0) return;
  findings_.add("mbarrier", Severity::kError, source_key(*program_, event.step) + " parity", [&] {
    return fmt::format(
        "{}: {} waits for the phase of parity {} of {} ({}) and sees one that ended {} phases after the last "
        "it saw; "
        "between them two phases more have gone by than it can tell by the parity.",
        cta_words(*by.cta), lanes_words(32 * static_cast<Agent>(warp), event.lanes), event.parity,
        mbarrier_words(event.address), step_words(*program_, *event.step), missed);
  });
}

}  // namespace flashback::emulator::checking
