#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "emulator/trace/lanes.h"

namespace flashback::emulator::trace {
namespace {

// Pixels.
constexpr double kLeft = 110, kRight = 20, kPlot = 1270, kTop = 64, kUnitLane = 30, kUnitRow = 14,
                 kWarpLane = 22, kGap = 4;
constexpr double kPanelHead = 44, kPanelFoot = 46, kCharacter = 6.2, kTileLabel = 260;

constexpr std::string_view kWaits = "#d2d2d2", kOther = "#000000";

// White, or what can be read on a light colour.
std::string_view text_on(std::string_view colour) {
  const auto part = [&](std::size_t at) { return std::stoi(std::string(colour.substr(at, 2)), nullptr, 16); };
  const double bright = 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5);
  return bright > 150 ? "#222" : "#fff";
}

class Palette {
 public:
  explicit Palette(std::span<const Colour> colours) : colours_(colours) {}
  std::string_view of(const std::string& section) {
    used_.insert(section);
    const auto found = std::find_if(colours_.begin(), colours_.end(),
                                    [&](const Colour& colour) { return colour.section == section; });
    return found == colours_.end() ? kOther : found->value;
  }
  // Those that were asked for: in the order of the table, then those that are not in it.
  std::vector<std::string> used() const {
    std::set<std::string> others = used_;
    std::vector<std::string> names;
    for (const Colour& colour : colours_) {
      if (others.erase(std::string(colour.section)) != 0) names.emplace_back(colour.section);
    }
    names.insert(names.end(), others.begin(), others.end());
    return names;
  }

 private:
  std::span<const Colour> colours_;
  std::set<std::string> used_;
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

bool of_several_warpgroups(const timing::Meeting& meeting) {
  return meeting.warps > 4;
}

class Drawing {
 public:
  std::string finish(double height) {
    const double width = kLeft + kPlot + kRight;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
               "{0:.0f} "
               "{1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n<rect "
               "width=\"100%\" "
               "height=\"100%\" fill=\"white\"/>\n",
               width, height) +
           body_ + "</svg>\n";
  }
  void rectangle(double x, double y, double width, double height, std::string_view fill,
                 const std::string& title) {
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
        "rx=\"1\"><title>{}</title>"
        "</rect>\n",
        x, y, width, height, fill, escaped(title));
  }
  void label(double x, double y, const std::string& text, std::string_view fill = "#222",
             const char* anchor = "start", int size = 11, bool bold = false) {
    body_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", x, y,
        fill, anchor, size, bold ? " font-weight=\"bold\"" : "", escaped(text));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, const char* dashes = nullptr) {
    body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n",
                         x1, y1, x2, y2, colour,
                         dashes ? fmt::format(" stroke-width=\"1.4\" stroke-dasharray=\"{}\"", dashes) : "");
  }

 private:
  std::string body_;
};

// Draws one run from `y` on; returns where it ends.
double draw(Drawing& drawing, Palette& palette, const Run& run, double y, double cycles) {
  const SteadyTile tile = steady_tile(run);
  const double begin = tile.begin - 0.06 * cycles, scale = kPlot / cycles;
  const auto x_of = [&](double time) { return kLeft + std::clamp((time - begin) * scale, 0.0, kPlot); };
  drawing.label(kLeft, y + 16, run.title + ", " + run.word, "#000", "start", 15, true);
  if (!run.note.empty()) drawing.label(kLeft + kPlot - kTileLabel, y + 16, run.note, "#555", "end");
  drawing.label(kLeft + kPlot, y + 16,
                tile.cycles > 0 ? fmt::format("tile {:.0f} cycles (median of {})", tile.cycles, tile.tiles)
                                : "fewer than three tiles",
                "#000", "end", 13, true);
  const double top = y + kPanelHead - 12;
  y = top;
  std::map<std::uint16_t, double> tops;  // of the warps' lanes
  for (const Lane& lane : lanes_of(run)) {
    // Bars that overlap share the height: each takes the first row that is free.
    std::vector<double> row_ends;
    std::vector<std::pair<const Bar*, std::size_t>> placed;
    for (const Bar& bar : lane.bars) {
      if (bar.end <= begin || bar.begin >= begin + cycles || (bar.name.empty() && !bar.waits)) continue;
      std::size_t row = 0;
      if (!lane.of_warp) {
        while (row < row_ends.size() && row_ends[row] > bar.begin) ++row;
        if (row == row_ends.size()) row_ends.push_back(0);
        row_ends[row] = bar.end;
      }
      placed.emplace_back(&bar, row);
    }
    const double height =
        lane.of_warp ? kWarpLane : std::max(kUnitLane, kUnitRow * static_cast<double>(row_ends.size()));
    if (lane.of_warp) {
      if (tops.empty()) y += 6;
      tops[lane.warp] = y;
    }
    drawing.rectangle(kLeft, y, kPlot, height, "#f6f6f4", lane.name);
    drawing.label(kLeft - 8, y + height / 2 + 4, lane.name, "#333", "end");
    const double share = (height - 2) / static_cast<double>(std::max<std::size_t>(row_ends.size(), 1));
    for (const bool waits : {false, true}) {  // waits lie over the section they are part of
      for (const auto& [bar, row] : placed) {
        if (bar->waits != waits) continue;
        const double x = x_of(bar->begin), width = std::max(x_of(bar->end) - x, 0.6);
        const double at = y + 1 + share * static_cast<double>(row);
        const std::string what = waits ? "waits for " + bar->waits_for : bar->name;
        const std::string_view colour = waits ? kWaits : palette.of(bar->name);
        drawing.rectangle(x, at, width, share - 0.5, colour,
                          fmt::format("{}: {:.0f} to {:.0f} ({:.0f} cycles)", what, bar->begin - tile.begin,
                                      bar->end - tile.begin, bar->end - bar->begin));
        const std::string& shown = waits ? bar->waits_for : bar->name;
        // Waits in the middle of a section cover it: the label goes to the widest part that is left.
        double left = x, free_x = x, free = waits ? width : 0;
        const auto part_ends = [&](double end) {
          if (end - left > free) free_x = left, free = end - left;
        };
        for (const auto& [other, other_row] : placed) {
          if (waits || !other->waits || other->end <= bar->begin || other->begin >= bar->end) continue;
          part_ends(x_of(other->begin));
          left = x_of(other->end);
        }
        part_ends(x + width);
        if (free > kCharacter * static_cast<double>(shown.size()) + 4) {
          drawing.label(free_x + free / 2, at + share / 2 + 4, shown, waits ? "#555" : text_on(colour),
                        "middle", 10);
        }
      }
    }
    y += height + kGap;
  }
  // Barriers of more than one warpgroup, where the last warp arrives.
  for (const timing::Meeting& meeting : run.timeline.meetings) {
    if (!of_several_warpgroups(meeting) || meeting.time < begin || meeting.time > begin + cycles) continue;
    const double x = x_of(meeting.time);
    drawing.line(x, tops[meeting.first] - 3, x, tops[meeting.last] + kWarpLane + 3, "#d62728", "4 3");
  }
  const double step = cycles > 8000 ? 1000 : 500;
  for (double time = 0; time < cycles; time += step) {
    const double x = x_of(tile.begin + time);
    if (x >= kLeft + kPlot) break;
    drawing.line(x, y, x, y + 5, "#666");
    drawing.label(x, y + 17, fmt::format("{:.0f}", time), "#555", "middle", 10);
  }
  if (tile.cycles > 0) {
    for (double edge : {tile.begin, tile.begin + tile.cycles}) {
      drawing.line(x_of(edge), top - 4, x_of(edge), y, "#000", "1 3");
    }
  }
  return y + kPanelFoot;
}

}  // namespace

std::string svg(std::span<const Run> runs, std::span<const Colour> colours) {
  double cycles = 1000;
  for (const Run& run : runs) {
    const SteadyTile tile = steady_tile(run);
    cycles = std::max(cycles, tile.cycles > 0 ? 1.35 * tile.cycles : run.outcome.cycles);
  }
  Drawing drawing;
  Palette palette(colours);
  const bool meetings = std::any_of(runs.begin(), runs.end(), [](const Run& run) {
    return std::any_of(run.timeline.meetings.begin(), run.timeline.meetings.end(), of_several_warpgroups);
  });
  drawing.label(
      kLeft, 20,
      std::string("Timeline of one CTA, SM cycles from the begin of a tile. Grey: waits, with what "
                  "they wait for.") +
          (meetings ? " Red, dashed: barriers of all compute warps, where the last one arrives." : ""),
      "#333", "start", 12);
  double y = kTop;
  for (const Run& run : runs) y = draw(drawing, palette, run, y, cycles);
  double x = kLeft;
  for (const std::string& name : palette.used()) {
    drawing.rectangle(x, 32, 12, 12, palette.of(name), name);
    drawing.label(x + 16, 42, name, "#333");
    x += 30 + kCharacter * static_cast<double>(name.size());
  }
  return drawing.finish(y);
}

}  // namespace flashback::emulator::trace
