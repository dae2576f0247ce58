#include "emulator/program/pending_loads.h"

#include <algorithm>
#include <limits>

#include "emulator/program/bits.h"

namespace flashback::emulator {
namespace {

// Forward over the blocks: a load is pending behind itself, until a wait or an unguarded step that uses one
// of its registers. Who is pending where control meets is the union.
class PendingLoads {
 public:
  PendingLoads(Draft* draft, const Flow& flow)
      : draft_(*draft), flow_(flow), loads_of_(draft->registers.size()) {
    for (std::uint32_t i = 0; i < draft_.steps.size(); ++i) {
      if (!draft_.steps[i].loads_tensor_memory) continue;
      for (std::uint32_t a = draft_.steps[i].access_begin; a < draft_.steps[i].access_end; ++a) {
        const Access& access = draft_.accesses[a];
        if (access.written) loads_of_[access.register_number].push_back(std::uint32_t(spans_.size()));
      }
      load_at_.push_back(i);
      spans_.push_back({i, std::numeric_limits<std::uint32_t>::max(), 0});
    }
  }

  std::vector<LoadSpan> run() {
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
  void walk(const Flow::Block& block, Bits* pending, bool mark) {
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      DraftStep& draft = draft_.steps[i];
      if (mark) extend_spans(*pending, i);
      for (std::uint32_t a = draft.access_begin; a < draft.access_end; ++a) {
        for (std::uint32_t load : loads_of_[draft_.accesses[a].register_number]) {
          if (!pending->test(load)) continue;
          if (mark) draft.step.touches_pending_load = true;
          if (draft.step.guard == kNone) pending->reset(load);
        }
      }
      if (draft.waits_for_tensor_loads && draft.step.guard == kNone) pending->clear();
      if (draft.loads_tensor_memory) {
        const auto load = std::lower_bound(load_at_.begin(), load_at_.end(), i) - load_at_.begin();
        pending->set(std::size_t(load));
        if (mark) extend_span(std::uint32_t(load), i);
      }
    }
  }
  void extend_spans(const Bits& pending, std::uint32_t step) {
    pending.for_each([&](std::size_t load) { extend_span(std::uint32_t(load), step); });
  }
  void extend_span(std::uint32_t load, std::uint32_t step) {
    spans_[load].first = std::min(spans_[load].first, step);
    spans_[load].last = std::max(spans_[load].last, step);
  }

  Draft& draft_;
  const Flow& flow_;
  std::vector<std::vector<std::uint32_t>> loads_of_;  // a register -> the loads that write it
  std::vector<std::uint32_t> load_at_;                // the step of each load
  std::vector<LoadSpan> spans_;
};

}  // namespace

std::vector<LoadSpan> mark_pending_loads(Draft* draft, const Flow& flow) {
  return PendingLoads(draft, flow).run();
}

}  // namespace flashback::emulator
