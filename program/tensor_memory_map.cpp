#include "program/tensor_memory_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace flashback::program {
namespace {

constexpr int kColumnsPerCharacter = 8;
constexpr std::string_view kIndent = "         ";

using Tiles = std::vector<TensorMemoryTile>;

bool meet(const TensorMemoryTile& a, const TensorMemoryTile& b) {
  return a.first < b.first + b.columns && b.first < a.first + a.columns;
}

int position(int column) {
  return column / kColumnsPerCharacter;
}

// Tiles of the same columns share a cell; what no tile of either row covers is one cell named "unused".
struct Row {
  std::map<int, std::pair<int, std::string>> cells;  // first column -> (columns, names)

  void add(int first, int columns, const std::string& name) {
    auto& [width, names] = cells[first];
    width = std::max(width, columns);
    names += (names.empty() ? "" : " ") + name;
  }

  std::string draw(std::string_view title, int columns) const {
    std::string line(std::size_t(position(columns)) + 1, ' ');
    line.front() = line.back() = '|';
    for (const auto& [first, cell] : cells) {
      const std::size_t begin = position(first), end = position(first + cell.first);
      line[begin] = line[end] = '|';
      const std::string name = cell.second.substr(0, end - begin - 1);
      line.replace(begin + 1 + (end - begin - 1 - name.size()) / 2, name.size(), name);
    }
    return fmt::format("  {:<7}{}\n", title, line);
  }

  std::string rule(const Row& other, int columns) const {
    std::string line(std::size_t(position(columns)) + 1, '-');
    line.front() = line.back() = '+';
    for (const Row* row : {this, &other}) {
      for (const auto& [first, cell] : row->cells)
        line[position(first)] = line[position(first + cell.first)] = '+';
    }
    return fmt::format("{}{}\n", kIndent, line);
  }

  // The column number under or over every border; one that would touch its left neighbour is left out.
  std::string numbers() const {
    std::map<int, std::string> borders;
    for (const auto& [first, cell] : cells) {
      borders[first] = std::to_string(first);
      borders[first + cell.first] = std::to_string(first + cell.first);
    }
    std::string line;
    for (const auto& [column, number] : borders) {
      const std::size_t at = position(column);
      if (!line.empty() && line.size() + 1 > at) continue;
      line.append(at - line.size(), ' ');
      line += number;
    }
    return fmt::format("{}{}\n", kIndent, line);
  }
};

Tiles unused(const Tiles& tiles, int columns) {
  Tiles gaps;
  const auto covered = [&](int column) {
    return std::any_of(tiles.begin(), tiles.end(),
                       [&](const auto& t) { return column >= t.first && column < t.first + t.columns; });
  };
  for (int column = 0; column < columns; column += kColumnsPerCharacter) {
    if (covered(column)) continue;
    if (!gaps.empty() && gaps.back().first + gaps.back().columns == column) {
      gaps.back().columns += kColumnsPerCharacter;
    } else {
      gaps.push_back({"unused", column, kColumnsPerCharacter, false});
    }
  }
  return gaps;
}

}  // namespace

std::string draw_tensor_memory(std::span<const TensorMemoryTile> span, int columns) {
  const Tiles tiles(span.begin(), span.end());
  Row upper, lower;
  Tiles accumulators;
  std::string list;
  for (const TensorMemoryTile& tile : tiles) {
    const auto under = std::find_if(accumulators.begin(), accumulators.end(),
                                    [&](const TensorMemoryTile& other) { return meet(tile, other); });
    const bool free_standing = under == accumulators.end();
    list += fmt::format("  {:<4} [{:>3}, {:>3})  {}{}\n", tile.name, tile.first, tile.first + tile.columns,
                        tile.accumulator ? "fp32" : "16 bit", free_standing ? "" : ", over " + under->name);
    if (tile.accumulator && free_standing) {
      accumulators.push_back(tile);
      upper.add(tile.first, tile.columns, tile.name);
    } else {
      lower.add(tile.first, tile.columns, tile.name);
    }
  }
  for (const TensorMemoryTile& gap : unused(tiles, columns)) {
    list += fmt::format("  {:<4} [{:>3}, {:>3})  unused\n", "", gap.first, gap.first + gap.columns);
    upper.add(gap.first, gap.columns, gap.name);
    lower.add(gap.first, gap.columns, gap.name);
  }
  const Row none;
  return upper.numbers() + upper.rule(none, columns) + upper.draw("fp32", columns) +
         upper.rule(lower, columns) + lower.draw("16 bit", columns) + lower.rule(none, columns) +
         lower.numbers() + "\n" + list;
}

}  // namespace flashback::program
