#include "emulator/program/pending_registers.h"

#include <algorithm>
#include <limits>

#include "emulator/program/bits.h"

namespace flashback::emulator {
namespace {

// Forward over the blocks: work of one kind is pending behind its step until a wait. Who is pending where
// control meets is the union.
class PendingWork {
 public:
  PendingWork(Draft* draft, const Flow& flow, Asynchronous kind)
      : draft_(*draft), flow_(flow), kind_(kind), holders_(draft->registers.size()) {
    for (std::uint32_t i = 0; i < draft_.steps.size(); ++i) {
      const DraftStep& step = draft_.steps[i];
      if (step.asynchronous != kind) continue;
      for (std::uint32_t a = step.access_begin; a < step.access_end; ++a) {
        const Access& access = draft_.accesses[a];
        if (!is_held(step, draft_.registers[access.register_number], access)) continue;
        holders_[access.register_number].push_back({std::uint32_t(spans_.size()), access.written});
      }
      spans_.push_back({i, std::numeric_limits<std::uint32_t>::max(), 0});
    }
  }

  std::vector<PendingSpan> run() {
    if (spans_.empty()) return {};
    std::vector<Bits> entering(flow_.blocks.size(), Bits(spans_.size()));
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
        Bits pending = entering[b];
        walk(flow_.blocks[b], &pending, false);
        for (std::uint32_t next : flow_.blocks[b].next) changed |= entering[next].unite(pending);
      }
    }
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      Bits pending = entering[b];
      walk(flow_.blocks[b], &pending, true);
    }
    return std::move(spans_);
  }

 private:
  struct Holder {
    std::uint32_t span;
    bool writes;
  };

  void walk(const Flow::Block& block, Bits* pending, bool mark) {
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      DraftStep& draft = draft_.steps[i];
      if (mark) pending->for_each([&](std::size_t span) { extend(span, i); });
      for (std::uint32_t a = draft.access_begin; a < draft.access_end; ++a) {
        const Access& access = draft_.accesses[a];
        for (const Holder& holder : holders_[access.register_number]) {
          if (pending->test(holder.span)) touch(draft, access, holder, pending, mark);
        }
      }
      if (draft.waits_for_all == kind_ && draft.step.guard == kNone) pending->clear();
      if (draft.asynchronous == kind_) {
        const std::size_t span = span_of(i);
        pending->set(span);
        if (mark) extend(span, i);
      }
    }
  }

  void touch(DraftStep& draft, const Access& access, const Holder& holder, Bits* pending, bool mark) {
    if (kind_ == Asynchronous::kTensorLoad) {
      if (mark) draft.step.touches_pending_load = true;
      if (draft.step.guard == kNone) pending->reset(holder.span);  // it waits for the load
      return;
    }
    const bool accumulates = draft.asynchronous == Asynchronous::kProduct && access.written && holder.writes;
    if (mark && (access.written || holder.writes) && !accumulates) draft.step.touches_pending_product = true;
  }

  std::size_t span_of(std::uint32_t step) const {
    return std::size_t(std::lower_bound(spans_.begin(), spans_.end(), step,
                                        [](const PendingSpan& s, std::uint32_t i) { return s.step < i; }) -
                       spans_.begin());
  }
  void extend(std::size_t span, std::uint32_t step) {
    spans_[span].first = std::min(spans_[span].first, step);
    spans_[span].last = std::max(spans_[span].last, step);
  }

  Draft& draft_;
  const Flow& flow_;
  const Asynchronous kind_;
  std::vector<std::vector<Holder>> holders_;  // of each register
  std::vector<PendingSpan> spans_;            // by step, ascending
};

}  // namespace

bool is_held(const DraftStep& step, const VirtualRegister& accessed, const Access& access) {
  switch (step.asynchronous) {
    case Asynchronous::kNone:
      return false;
    case Asynchronous::kTensorLoad:
      return access.written;
    case Asynchronous::kProduct:  // the accumulator, and A: everything else of 32 bits is a literal
      return accessed.bytes == 4 && !accessed.is_preset;
  }
  return false;
}

std::vector<PendingSpan> mark_pending_registers(Draft* draft, const Flow& flow) {
  std::vector<PendingSpan> spans = PendingWork(draft, flow, Asynchronous::kTensorLoad).run();
  const std::vector<PendingSpan> products = PendingWork(draft, flow, Asynchronous::kProduct).run();
  spans.insert(spans.end(), products.begin(), products.end());
  return spans;
}

}  // namespace flashback::emulator
