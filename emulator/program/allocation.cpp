#include "emulator/program/allocation.h"

#include <algorithm>
#include <limits>
#include <map>

#include "emulator/program/bits.h"

namespace flashback::emulator {
namespace {

// The steps between which a register holds a value that somebody may still read. Lanes take their own paths,
// but each writes and reads its own lane of a slot only, so that liveness along single paths is enough.
struct Interval {
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max(), last = 0;
  bool used() const { return first <= last; }
  void include(std::uint32_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }
};

class Liveness {
 public:
  Liveness(const Draft& draft, const Flow& flow)
      : draft_(draft), flow_(flow), live_in_(flow.blocks.size(), Bits(draft.registers.size())) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = flow_.blocks.size(); b-- > 0;) {
        Bits live = live_out(b);
        walk(flow_.blocks[b], &live, nullptr);
        changed |= live_in_[b].unite(live);
      }
    }
  }

  std::vector<Interval> intervals(const std::vector<PendingSpan>& spans) const {
    std::vector<Interval> intervals(draft_.registers.size());
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      const Flow::Block& block = flow_.blocks[b];
      Bits live = live_out(b);
      live.for_each([&](std::size_t r) { intervals[r].include(block.end - 1); });
      walk(block, &live, &intervals);
      live.for_each([&](std::size_t r) { intervals[r].include(block.begin); });
    }
    // Asynchronous work reads and writes its registers later than the text says.
    for (const PendingSpan& span : spans) {
      const DraftStep& step = draft_.steps[span.step];
      for (std::uint32_t a = step.access_begin; a < step.access_end; ++a) {
        const Register accessed = draft_.accesses[a].register_number;
        if (!is_held(step, draft_.registers[accessed], draft_.accesses[a])) continue;
        intervals[accessed].include(span.first);
        intervals[accessed].include(span.last);
      }
    }
    return intervals;
  }

 private:
  Bits live_out(std::size_t block) const {
    Bits live(draft_.registers.size());
    for (std::uint32_t next : flow_.blocks[block].next) live.unite(live_in_[next]);
    return live;
  }
  // Backwards. A guarded write leaves the other lanes' value alive.
  void walk(const Flow::Block& block, Bits* live, std::vector<Interval>* intervals) const {
    for (std::uint32_t i = block.end; i-- > block.begin;) {
      const DraftStep& draft = draft_.steps[i];
      for (std::uint32_t a = draft.access_begin; a < draft.access_end; ++a) {
        const Access& access = draft_.accesses[a];
        if (intervals) (*intervals)[access.register_number].include(i);
        if (access.written && !access.read && draft.step.guard == kNone) live->reset(access.register_number);
      }
      for (std::uint32_t a = draft.access_begin; a < draft.access_end; ++a) {
        const Access& access = draft_.accesses[a];
        if (access.read) live->set(access.register_number);
      }
    }
  }

  const Draft& draft_;
  const Flow& flow_;
  std::vector<Bits> live_in_;
};

// Slots of one width, numbered from 0; a slot is free again once the interval of its register has ended.
class SlotPool {
 public:
  std::uint32_t take(const Interval& interval) {
    // Strictly before: a body may write its destination before it has read all of its sources.
    while (!busy_.empty() && busy_.begin()->first < interval.first) {
      free_.push_back(busy_.begin()->second);
      busy_.erase(busy_.begin());
    }
    std::uint32_t slot = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    busy_.emplace(interval.last, slot);
    return slot;
  }
  std::uint32_t take_for_ever() { return count_++; }
  std::uint32_t count() const { return count_; }

 private:
  std::multimap<std::uint32_t, std::uint32_t> busy_;  // last step -> slot
  std::vector<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

constexpr int kWidths[] = {16, 8, 4, 2, 0};  // regions of the register file, the widest first
constexpr std::uint32_t kAlignment = 64;     // of the regions and of the register file, for vector loads

std::uint32_t bytes_of_slot(int width) {
  return width == 0 ? sizeof(LaneMask) : 32 * width;
}

// The slot of each register; kNone for those that no step names.
std::vector<Slot> assign_slots(const Draft& draft, const std::vector<Interval>& intervals, Program* program) {
  std::vector<Register> order;
  for (std::size_t r = 0; r < draft.registers.size(); ++r) {
    if (intervals[r].used()) order.push_back(Register(r));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](Register x, Register y) { return intervals[x].first < intervals[y].first; });
  std::vector<Slot> slots(draft.registers.size(), kNone);
  std::uint32_t region = 0;
  for (int width : kWidths) {
    SlotPool pool;
    for (Register r : order) {
      if (draft.registers[r].bytes != width) continue;
      const std::uint32_t number =
          draft.registers[r].is_preset ? pool.take_for_ever() : pool.take(intervals[r]);
      slots[r] = Slot(region + number * bytes_of_slot(width));
    }
    region += (pool.count() * bytes_of_slot(width) + kAlignment - 1) / kAlignment * kAlignment;
  }
  program->register_bytes = region;
  return slots;
}

}  // namespace

void allocate(const Draft& draft, const Flow& flow, const std::vector<PendingSpan>& spans, Program* program) {
  const std::vector<Slot> slots = assign_slots(draft, Liveness(draft, flow).intervals(spans), program);
  auto slot = [&](Register number) { return number == kNone ? kNone : slots[number]; };

  auto list = std::make_unique<Slot[]>(draft.lists.size());
  std::transform(draft.lists.begin(), draft.lists.end(), list.get(), slot);
  for (const DraftStep& drafted : draft.steps) {
    Step step = drafted.step;
    for (Slot* place : {&step.d, &step.a, &step.b, &step.c, &step.guard}) *place = slot(*place);
    if (step.list_size != 0) step.list = list.get() + drafted.list_begin;
    program->code.push_back(step);
    program->source.push_back(drafted.source);
    program->access_begin.push_back(static_cast<std::uint32_t>(program->accesses.size()));
    for (std::uint32_t a = drafted.access_begin; a < drafted.access_end; ++a) {
      const Access& access = draft.accesses[a];
      const VirtualRegister& accessed = draft.registers[access.register_number];
      if (accessed.is_preset) continue;
      program->accesses.push_back({access.register_number, slots[access.register_number], accessed.bytes,
                                   access.read, access.written});
    }
  }
  program->access_begin.push_back(static_cast<std::uint32_t>(program->accesses.size()));
  program->lists.push_back(std::move(list));

  const std::uint64_t dynamic_start = (std::uint64_t{program->static_shared_bytes} + 1023) / 1024 * 1024;
  for (std::size_t r = 0; r < draft.registers.size(); ++r) {
    const VirtualRegister& preset = draft.registers[r];
    if (!preset.is_preset || slots[r] == kNone) continue;
    program->presets.push_back(
        {slots[r], preset.bytes, preset.kind, preset.value + (preset.dynamic_shared ? dynamic_start : 0)});
  }
}

}  // namespace flashback::emulator
