// The critical path of a tile, walked from its end to its begin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emulator/trace/lanes.h"

namespace flashback::emulator::trace {
namespace {

using timing::Actor;
using timing::Agent;
using timing::Span;

class Walk {
 public:
  explicit Walk(const timing::Timeline& timeline) : timeline_(timeline) {
    for (const Span& span : timeline.spans) {
      if (span.actor.agent == Agent::kWarp) {
        (span.waits ? waits_ : sections_)[span.actor.warp].push_back(&span);
      } else {
        units_[span.actor.agent].push_back(&span);
      }
    }
    const auto sort = [](auto& of) {
      for (auto& [key, spans] : of)
        std::sort(spans.begin(), spans.end(), [](const Span* x, const Span* y) { return x->end < y->end; });
    };
    sort(waits_);
    sort(sections_);
    sort(units_);
  }

  std::map<std::string, double> back(std::uint16_t warp, double from, double to) {
    begin_ = to;
    time_ = from;
    while (time_ > begin_) {
      const double now = time_;
      const Span* const wait = last(waits_[warp], time_);
      work(warp, wait ? wait->end : begin_);
      if (!wait || time_ <= begin_) break;
      spend("signals", wait->caused);
      warp = wait->until.agent == Agent::kWarp ? wait->until.warp : through_units(wait->until);
      // Where signals cost nothing two warps may end each other's waits at one time.
      if (time_ == now) spend("not followed", begin_);
    }
    return std::move(cycles_);
  }

 private:
  using Spans = std::vector<const Span*>;

  // The last to end at `time` or before.
  static const Span* last(const Spans& spans, double time) {
    const auto after = std::upper_bound(spans.begin(), spans.end(), time,
                                        [](double t, const Span* span) { return t < span->end; });
    return after == spans.begin() ? nullptr : *std::prev(after);
  }

  void spend(const std::string& what, double since) {
    since = std::clamp(since, begin_, time_);
    cycles_[what] += time_ - since;
    time_ = since;
  }

  // What the warp did since, by sections.
  void work(std::uint16_t warp, double since) {
    const Spans& sections = sections_[warp];
    while (time_ > std::max(since, begin_)) {
      // The one that is going on ends next.
      const auto next = std::upper_bound(sections.begin(), sections.end(), time_,
                                         [](double t, const Span* span) { return t <= span->end; });
      const bool inside = next != sections.end() && (*next)->begin < time_;
      const Span* const before = inside ? nullptr : last(sections, time_);
      const double edge = inside ? (*next)->begin : before ? before->end : begin_;
      spend(inside ? "warps: " + timeline_.kernel->sections[(*next)->actor.section] : "warps, no section",
            std::max(edge, since));
    }
  }

  // From what a unit did until now to the warp that it was held up by.
  std::uint16_t through_units(const Actor& actor) {
    // What it did then: begun before, and ended now. A bulk copy that has been read ends a little later.
    const Spans& spans = units_[actor.agent];
    auto at = spans.rend();
    for (auto it = spans.rbegin(); it != spans.rend(); ++it) {
      const Span& span = **it;
      if (span.actor.warp != actor.warp || span.actor.section != actor.section || span.begin >= time_)
        continue;
      if (at != spans.rend() && std::abs((*at)->end - time_) <= std::abs(span.end - time_)) break;
      at = it;
    }
    if (at == spans.rend()) {
      spend("a unit, not drawn", begin_);
      return actor.warp;
    }
    const char* const unit = actor.agent == Agent::kTensorCore ? "tensor core"
                             : actor.agent == Agent::kCopy     ? "TMA"
                                                               : "reduction";
    while (true) {
      const Span& span = **at;
      const std::string what = fmt::format("{}: {}", unit, timeline_.kernel->sections[span.actor.section]);
      // Copies go side by side from when they are asked for; products follow each other.
      const auto before = std::next(at);
      const bool product = actor.agent == Agent::kTensorCore;
      const bool held_up = product && before != spans.rend() && (*before)->end > span.caused;
      spend(what, held_up ? (*before)->end : product ? span.caused : span.begin);
      if (!held_up || time_ <= begin_) return span.actor.warp;
      at = before;
    }
  }

  const timing::Timeline& timeline_;
  std::map<std::uint16_t, Spans> waits_, sections_;  // by warp, in the order in which they end
  std::map<Agent, Spans> units_;
  std::map<std::string, double> cycles_;
  double time_ = 0, begin_ = 0;
};

}  // namespace

std::vector<PathStep> critical_path(const Run& run) {
  const TileBegins begins = tile_begins(run);
  const bool replayed = std::any_of(run.timeline.spans.begin(), run.timeline.spans.end(),
                                    [](const Span& span) { return span.waits && span.caused > 0; });
  if (begins.from == begins.to || !replayed) return {};
  const auto tiles = static_cast<double>(begins.to - begins.from);
  std::vector<PathStep> steps;
  for (const auto& [what, cycles] :
       Walk(run.timeline).back(begins.warp, begins.times[begins.to], begins.times[begins.from]))
    steps.push_back({what, cycles / tiles});
  std::stable_sort(steps.begin(), steps.end(),
                   [](const PathStep& x, const PathStep& y) { return x.cycles > y.cycles; });
  return steps;
}

}  // namespace flashback::emulator::trace
