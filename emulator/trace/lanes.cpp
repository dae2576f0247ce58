#include "emulator/trace/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace flashback::emulator::trace {
namespace {

using timing::Agent;
using timing::Span;

std::string who(const timing::Kernel& kernel, const timing::Actor& actor) {
  const std::string& section = kernel.sections[actor.section];
  if (actor.agent == Agent::kWarp)
    return fmt::format("warp {}{}{}", actor.warp, section.empty() ? "" : ": ", section);
  return section.empty() ? "asynchronous work" : section;
}

}  // namespace

std::vector<Lane> lanes_of(const Run& run) {
  const timing::Kernel& kernel = *run.timeline.kernel;
  Lane units[] = {{"tensor core", false, {}}, {"TMA", false, {}}, {"reduction", false, {}}};
  std::map<std::uint16_t, Lane> warps;
  std::map<std::uint16_t, std::set<std::uint16_t>> sections, asked;
  for (const Span& span : run.timeline.spans) {
    const Bar bar = {span.begin, span.end, kernel.sections[span.actor.section], span.waits,
                     span.waits ? who(kernel, span.until) : ""};
    if (span.actor.agent != Agent::kWarp) {
      units[static_cast<int>(span.actor.agent) - 1].bars.push_back(bar);
      asked[span.actor.warp].insert(span.actor.section);
      continue;
    }
    Lane& lane = warps[span.actor.warp];
    lane.name = fmt::format("warp {}", span.actor.warp);
    lane.of_warp = true;
    lane.bars.push_back(bar);
    if (span.actor.section != 0) sections[span.actor.warp].insert(span.actor.section);
  }
  std::vector<Lane> lanes;
  for (Lane& unit : units) {
    if (!unit.bars.empty()) lanes.push_back(std::move(unit));
  }
  for (auto& [warp, lane] : warps) {
    const std::set<std::uint16_t>& own = sections[warp];
    if (own.empty() || std::includes(asked[warp].begin(), asked[warp].end(), own.begin(), own.end()))
      continue;
    lanes.push_back(std::move(lane));
  }
  for (Lane& lane : lanes) {
    std::stable_sort(lane.bars.begin(), lane.bars.end(),
                     [](const Bar& x, const Bar& y) { return x.begin < y.begin; });
  }
  return lanes;
}

SteadyTile steady_tile(const Run& run) {
  // The warp with the most sections, and the one of them that it begins first.
  std::map<std::uint16_t, std::set<std::uint16_t>> sections;
  std::map<std::uint16_t, std::uint16_t> first;
  for (const timing::Outcome::Begin& begin : run.outcome.begins) {
    sections[begin.warp].insert(begin.section);
    first.try_emplace(begin.warp, begin.section);
  }
  if (sections.empty()) return {};
  const auto most = std::max_element(sections.begin(), sections.end(), [](const auto& x, const auto& y) {
    return x.second.size() < y.second.size();
  });
  std::vector<double> begins;
  for (const timing::Outcome::Begin& begin : run.outcome.begins) {
    if (begin.warp == most->first && begin.section == first[most->first]) begins.push_back(begin.time);
  }
  if (begins.size() < 3) return {};
  std::vector<double> tiles;
  const std::size_t from = begins.size() / 4, to = std::max(from + 2, begins.size() * 7 / 8);
  for (std::size_t i = from; i + 1 < to; ++i) tiles.push_back(begins[i + 1] - begins[i]);
  std::sort(tiles.begin(), tiles.end());
  return {tiles[tiles.size() / 2], begins[begins.size() / 2], static_cast<int>(tiles.size())};
}

}  // namespace flashback::emulator::trace
