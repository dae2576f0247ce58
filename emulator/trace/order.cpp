// The order in which a tile's sections begin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emulator/trace/trace.h"

namespace flashback::emulator::trace {
namespace {

// A warp begins a section: its n-th beginning of any.
struct Occurrence {
  double time = 0;
  std::uint16_t warp = 0;
  std::uint32_t n = 0;
};
using Occurrences = std::vector<Occurrence>;

struct OfTiles {
  std::map<std::string, Occurrences> by_who;  // one a middle tile
  Occurrences tiles;                          // the beginnings of these
};

// Of warps that do the same, the first of a warpgroup; of warps that each do some of the tiles, all.
OfTiles of_tiles(const Run& run) {
  std::map<std::uint16_t, std::map<std::uint16_t, Occurrences>> by_warp, by_section;
  std::map<std::uint16_t, std::uint16_t> first;
  std::map<std::uint16_t, std::uint32_t> begun;
  for (const timing::Outcome::Begin& begin : run.outcome.begins) {
    const Occurrence occurrence = {begin.time, begin.warp, begun[begin.warp]++};
    by_warp[begin.warp][begin.section].push_back(occurrence);
    by_section[begin.section][begin.warp].push_back(occurrence);
    first.try_emplace(begin.warp, begin.section);
  }
  OfTiles found;
  if (by_warp.empty()) return found;
  // A tile's first section is the first one of the warp with the most.
  const auto most = std::max_element(by_warp.begin(), by_warp.end(), [](const auto& x, const auto& y) {
    return x.second.size() < y.second.size();
  });
  const Occurrences& tiles = most->second[first[most->first]];
  const std::size_t begin = tiles.size() / 4, end = tiles.size() * 7 / 8;
  found.tiles.assign(tiles.begin() + long(begin), tiles.begin() + long(end));
  const auto add = [&](const std::string& who, const Occurrences& all) {
    const auto per_tile = static_cast<std::size_t>(std::lround(double(all.size()) / double(tiles.size())));
    if (per_tile == 0) return;  // not a tile's
    Occurrences& middle = found.by_who[who];
    for (std::size_t i = begin; i < end && i * per_tile < all.size(); ++i)
      middle.push_back(all[i * per_tile]);
    if (middle.empty()) found.by_who.erase(who);
  };
  for (const auto& [section, warps] : by_section) {
    const std::string& name = run.timeline.kernel->sections[section];
    Occurrences shared;
    std::string sharers;
    for (const auto& [warp, all] : warps) {
      if (2 * all.size() < tiles.size() + tiles.size() / 2) {
        shared.insert(shared.end(), all.begin(), all.end());
        sharers += fmt::format("{}{}", sharers.empty() ? "" : " and ", warp);
      } else if (warp % 4 == 0 || !warps.contains(static_cast<std::uint16_t>(warp / 4 * 4))) {
        add(fmt::format("warp {}: {}", warp, name), all);
      }
    }
    std::sort(shared.begin(), shared.end(), [](const auto& x, const auto& y) { return x.time < y.time; });
    if (!shared.empty()) add(fmt::format("warps {}: {}", sharers, name), shared);
  }
  return found;
}

double median_after(const Occurrences& those, const Occurrences& tiles) {
  std::vector<double> times;
  for (std::size_t i = 0; i < those.size(); ++i) times.push_back(those[i].time - tiles[i].time);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Whether in every tile x must have begun when y does.
bool depends(const timing::Dependences& dependences, const Occurrences& x, const Occurrences& y) {
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!dependences.before(x[i].warp, x[i].n, y[i].warp, y[i].n)) return false;
  }
  return true;
}

}  // namespace

std::vector<Beginning> beginnings(const Run& run) {
  const OfTiles of = of_tiles(run);
  std::vector<Beginning> found;
  for (const auto& [who, those] : of.by_who) found.push_back({who, median_after(those, of.tiles)});
  std::sort(found.begin(), found.end(),
            [](const Beginning& x, const Beginning& y) { return x.cycles < y.cycles; });
  return found;
}

Order compare_order(const Run& run, const Run& predicted, const timing::Dependences& dependences) {
  const OfTiles here = of_tiles(run), there = of_tiles(predicted);
  Order order;
  for (const auto& [who, those] : there.by_who) {
    if (!here.by_who.contains(who))
      order.differences.push_back(fmt::format("{} is {} and not {}", who, predicted.word, run.word));
  }
  for (const auto& [who, those] : here.by_who) {
    if (!there.by_who.contains(who))
      order.differences.push_back(fmt::format("{} is {} and not {}", who, run.word, predicted.word));
  }
  const double apart = steady_tile(predicted).cycles / 20;
  for (const auto& [x, x_there] : there.by_who) {
    for (const auto& [y, y_there] : there.by_who) {
      const auto x_here = here.by_who.find(x), y_here = here.by_who.find(y);
      if (x_here == here.by_who.end() || y_here == here.by_who.end()) continue;
      const double later = median_after(y_there, there.tiles) - median_after(x_there, there.tiles);
      const double later_here =
          median_after(y_here->second, here.tiles) - median_after(x_here->second, here.tiles);
      const bool must = depends(dependences, x_there, y_there);
      // Each pair once, as (earlier, later).
      if (x == y || (!must && (later < apart || depends(dependences, y_there, x_there)))) continue;
      ++(must ? order.dependent : order.free);
      if (later_here > 0) {
        ++(must ? order.dependent_kept : order.free_kept);
      } else {
        order.differences.push_back(
            fmt::format("{} begins {:.0f} cycles before {} as {}, and {:.0f} after it as {}: {}", x, later, y,
                        predicted.word, -later_here, run.word,
                        must ? "but it must come first" : "neither waits for the other"));
      }
    }
  }
  return order;
}

}  // namespace flashback::emulator::trace
