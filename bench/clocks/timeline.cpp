#include "bench/clocks/timeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>

namespace flashback::clocks {
namespace {

namespace timing = emulator::timing;
using timing::Actor;
using timing::Agent;
using timing::Span;

// Two notes with nothing to wait for between them are about 30 cycles apart.
constexpr double kAtOnce = 50;

constexpr Actor kSomebody = {Agent::kCopy, 0, 0};  // who ends a wait that was not predicted

// Who ends the wait at a line of the PTX: most often, as predicted.
class Enders {
 public:
  Enders(const timing::Timeline& predicted, const std::map<std::string, std::uint16_t>& sections) {
    std::map<std::uint32_t, std::map<std::tuple<Agent, std::uint16_t, std::uint16_t>, int>> counts;
    for (const timing::Waited& wait : predicted.waits) {
      const auto section = sections.find(predicted.kernel->sections[wait.until.section]);
      const std::uint16_t number = section == sections.end() ? std::uint16_t{0} : section->second;
      ++counts[wait.line][{wait.until.agent, wait.until.warp, number}];
    }
    for (const auto& [line, of_line] : counts) {
      const auto most = std::max_element(of_line.begin(), of_line.end(),
                                         [](const auto& x, const auto& y) { return x.second < y.second; });
      std::apply(
          [&](Agent agent, std::uint16_t warp, std::uint16_t section) {
            enders_[line] = {agent, warp, section};
          },
          most->first);
    }
  }
  // Null where none was predicted.
  const Actor* of(std::uint32_t line) const {
    const auto found = enders_.find(line);
    return found == enders_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::uint32_t, Actor> enders_;
};

}  // namespace

emulator::trace::Run timeline_of(const std::vector<Place>& places,
                                 const std::vector<std::vector<Stamp>>& stamps,
                                 const emulator::trace::Run& predicted) {
  emulator::trace::Run run;
  run.title = predicted.title;
  run.word = "measured";
  run.note = "Units: from the request to the end of the wait for it.";
  const auto kernel = std::make_shared<timing::Kernel>();
  kernel->name = run.title;
  kernel->sections = {""};
  std::map<std::string, std::uint16_t> sections = {{"", 0}};
  for (const Place& place : places) {
    if (sections.try_emplace(place.section, static_cast<std::uint16_t>(kernel->sections.size())).second)
      kernel->sections.push_back(place.section);
  }
  run.timeline.kernel = kernel;
  const Enders enders(predicted.timeline, sections);

  std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<double>> begins;  // of a warp's section
  for (std::uint16_t w = 0; w < stamps.size(); ++w) {
    for (const Stamp& stamp : stamps[w]) {
      const std::string& section = places[stamp.place].section;
      if (!section.empty()) begins[{w, sections[section]}].push_back(stamp.cycle);
    }
  }

  std::vector<Span>& spans = run.timeline.spans;
  std::map<std::tuple<Agent, std::uint16_t, std::uint16_t>, std::uint16_t> speaker;
  for (std::uint16_t w = 0; w < stamps.size(); ++w) {
    std::uint16_t section = 0;
    double section_began = 0, wait_began = 0;
    std::uint32_t waiting_line = 0;
    for (const Stamp& stamp : stamps[w]) {
      const Place& place = places[stamp.place];
      if (place.ends_wait && waiting_line != 0) {
        const Actor* const by = enders.of(waiting_line);
        if (stamp.cycle - wait_began > kAtOnce)
          spans.push_back({{Agent::kWarp, w, section}, wait_began, stamp.cycle, true, by ? *by : kSomebody});
        const auto asked = by ? begins.find({w, by->section}) : begins.end();
        if (by && by->agent != Agent::kWarp && asked != begins.end()) {
          // What the warp has asked for last; the first warp of a warpgroup speaks for its products.
          const std::vector<double>& times = asked->second;
          const auto after = std::upper_bound(times.begin(), times.end(), wait_began);
          const std::uint16_t group = by->agent == Agent::kTensorCore ? w / 4 : w;
          const bool speaks = speaker.try_emplace({by->agent, by->section, group}, w).first->second == w;
          if (speaks && after != times.begin())
            spans.push_back({{by->agent, w, by->section}, *std::prev(after), stamp.cycle, false, {}});
        }
        waiting_line = 0;
      }
      const bool last = &stamp == &stamps[w].back();
      if (!place.section.empty() || last) {
        if (section != 0)
          spans.push_back({{Agent::kWarp, w, section}, section_began, stamp.cycle, false, {}});
        section = sections[place.section];
        section_began = stamp.cycle;
        if (section != 0) run.outcome.begins.push_back({stamp.cycle, w, section});
      }
      if (place.waiting_line != 0) {
        waiting_line = place.waiting_line;
        wait_began = stamp.cycle;
      }
      run.outcome.cycles = std::max(run.outcome.cycles, stamp.cycle);
    }
  }
  std::sort(run.outcome.begins.begin(), run.outcome.begins.end(),
            [](const auto& x, const auto& y) { return x.time < y.time; });
  std::sort(spans.begin(), spans.end(), [](const Span& x, const Span& y) { return x.end < y.end; });
  return run;
}

}  // namespace flashback::clocks
