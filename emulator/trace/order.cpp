// The order in which a tile's sections begin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emulator/trace/trace.h"

namespace flashback::emulator::trace {
namespace {

using Times = std::vector<double>;

double median(Times times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

std::string section_of(const std::string& who) {
  return who.substr(who.find(": ") + 2);
}
std::string warp_of(const std::string& who) {
  return who.substr(0, who.find(": "));
}

// Warps that do the same, each on its own part of a tile: how far one is ahead of the other is no order.
bool peers(const std::map<std::string, double>& all, const std::string& one, const std::string& other) {
  return warp_of(one) != warp_of(other) && all.contains(warp_of(one) + ": " + section_of(other)) &&
         all.contains(warp_of(other) + ": " + section_of(one));
}

}  // namespace

std::vector<Beginning> beginnings(const Run& run) {
  // Of each section, by warp; the tile's own is the first one of the warp with the most sections.
  std::map<std::uint16_t, std::map<std::uint16_t, Times>> by_warp, by_section;
  std::map<std::uint16_t, std::uint16_t> first;
  for (const timing::Outcome::Begin& begin : run.outcome.begins) {
    by_warp[begin.warp][begin.section].push_back(begin.time);
    by_section[begin.section][begin.warp].push_back(begin.time);
    first.try_emplace(begin.warp, begin.section);
  }
  if (by_warp.empty()) return {};
  const auto most = std::max_element(by_warp.begin(), by_warp.end(), [](const auto& x, const auto& y) {
    return x.second.size() < y.second.size();
  });
  const Times& tiles = most->second[first[most->first]];
  std::vector<Beginning> found;
  const auto add = [&](const std::string& who, const Times& times) {
    const auto per_tile = static_cast<std::size_t>(std::lround(double(times.size()) / double(tiles.size())));
    if (per_tile == 0) return;  // not a tile's
    Times offsets;
    for (std::size_t i = tiles.size() / 4; i < tiles.size() * 7 / 8 && i * per_tile < times.size(); ++i)
      offsets.push_back(times[i * per_tile] - tiles[i]);
    if (!offsets.empty()) found.push_back({who, median(offsets)});
  };
  for (const auto& [section, warps] : by_section) {
    const std::string& name = run.timeline.kernel->sections[section];
    Times shared;  // of warps that each do some of the tiles
    std::string sharers;
    for (const auto& [warp, times] : warps) {
      if (2 * times.size() < tiles.size() + tiles.size() / 2) {
        shared.insert(shared.end(), times.begin(), times.end());
        sharers += fmt::format("{}{}", sharers.empty() ? "" : " and ", warp);
      } else if (warp % 4 == 0 || !warps.contains(static_cast<std::uint16_t>(warp / 4 * 4))) {
        add(fmt::format("warp {}: {}", warp, name), times);
      }
    }
    std::sort(shared.begin(), shared.end());
    if (!shared.empty()) add(fmt::format("warps {}: {}", sharers, name), shared);
  }
  std::sort(found.begin(), found.end(),
            [](const Beginning& x, const Beginning& y) { return x.cycles < y.cycles; });
  return found;
}

std::vector<std::string> other_order(const Run& run, const Run& as) {
  std::map<std::string, double> here;
  for (const Beginning& beginning : beginnings(run)) here[beginning.who] = beginning.cycles;
  const std::vector<Beginning> there = beginnings(as);
  std::vector<std::string> sentences;
  for (const Beginning& beginning : there) {
    if (!here.contains(beginning.who))
      sentences.push_back(fmt::format("{} is {} and not {}", beginning.who, as.word, run.word));
  }
  for (const auto& [who, cycles] : here) {
    if (std::none_of(there.begin(), there.end(), [&](const Beginning& b) { return b.who == who; }))
      sentences.push_back(fmt::format("{} is {} and not {}", who, run.word, as.word));
  }
  const double apart = steady_tile(as).cycles / 20;
  for (std::size_t i = 0; i < there.size(); ++i) {
    for (std::size_t j = i + 1; j < there.size(); ++j) {
      const auto earlier = here.find(there[i].who), later = here.find(there[j].who);
      if (earlier == here.end() || later == here.end()) continue;
      if (peers(here, earlier->first, later->first)) continue;
      if (there[j].cycles - there[i].cycles < apart || earlier->second <= later->second) continue;
      sentences.push_back(fmt::format("{} begins {:.0f} cycles before {} as {}, and {:.0f} after it as {}",
                                      earlier->first, there[j].cycles - there[i].cycles, later->first,
                                      as.word, earlier->second - later->second, run.word));
    }
  }
  return sentences;
}

}  // namespace flashback::emulator::trace
