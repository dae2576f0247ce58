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
  Lane units[] = {{"tensor core", false, 0, {}}, {"TMA", false, 0, {}}, {"reduction", false, 0, {}}};
  std::map<std::uint16_t, Lane> warps;
  std::set<std::uint16_t> with_sections;
  for (const Span& span : run.timeline.spans) {
    const Bar bar = {span.begin, span.end, kernel.sections[span.actor.section], span.waits,
                     span.waits ? who(kernel, span.until) : ""};
    if (span.actor.agent != Agent::kWarp) {
      units[static_cast<int>(span.actor.agent) - 1].bars.push_back(bar);
      continue;
    }
    Lane& lane = warps[span.actor.warp];
    lane.name = fmt::format("warp {}", span.actor.warp);
    lane.of_warp = true;
    lane.warp = span.actor.warp;
    lane.bars.push_back(bar);
    if (span.actor.section != 0) with_sections.insert(span.actor.warp);
  }
  std::vector<Lane> lanes;
  for (Lane& unit : units) {
    if (!unit.bars.empty()) lanes.push_back(std::move(unit));
  }
  for (auto& [warp, lane] : warps) {
    if (with_sections.contains(warp)) lanes.push_back(std::move(lane));
  }
  for (Lane& lane : lanes) {
    std::stable_sort(lane.bars.begin(), lane.bars.end(),
                     [](const Bar& x, const Bar& y) { return x.begin < y.begin; });
  }
  return lanes;
}

TileBegins tile_begins(const Run& run) {
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
  TileBegins begins;
  begins.warp = most->first;
  for (const timing::Outcome::Begin& begin : run.outcome.begins) {
    if (begin.warp == most->first && begin.section == first[most->first]) begins.times.push_back(begin.time);
  }
  if (begins.times.size() < 3) return begins;
  begins.from = begins.times.size() / 4;
  begins.to = std::max(begins.from + 1, begins.times.size() * 7 / 8 - 1);
  return begins;
}

SteadyTile steady_tile(const Run& run) {
  const TileBegins begins = tile_begins(run);
  if (begins.from == begins.to) return {};
  std::vector<std::pair<double, double>> tiles;  // cycles, begin
  for (std::size_t i = begins.from; i < begins.to; ++i)
    tiles.emplace_back(begins.times[i + 1] - begins.times[i], begins.times[i]);
  std::sort(tiles.begin(), tiles.end());
  const auto& [cycles, begin] = tiles[tiles.size() / 2];
  return {cycles, begin, static_cast<int>(tiles.size())};
}

}  // namespace flashback::emulator::trace
