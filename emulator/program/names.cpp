#include "emulator/program/names.h"

#include <charconv>

namespace flashback::emulator {

std::optional<Symbol> Names::find(std::string_view name) const {
  for (Scope scope = current_;; scope = levels_[scope].parent) {
    const Level& level = levels_[scope];
    if (auto symbol = level.symbols.find(name); symbol != level.symbols.end()) return symbol->second;
    if (!level.ranges.empty()) {
      if (std::optional<Register> found = find_in_ranges(level, name)) {
        Symbol symbol;
        symbol.register_number = *found;
        return symbol;
      }
    }
    if (scope == 0) return std::nullopt;
  }
}

// `%r12` of `.reg .b32 %r<40>`. The prefix may end in digits itself, so each split is tried.
std::optional<Register> Names::find_in_ranges(const Level& level, std::string_view name) {
  std::size_t split = name.size();
  while (split > 0 && name[split - 1] >= '0' && name[split - 1] <= '9') --split;
  for (; split < name.size(); ++split) {
    auto range = level.ranges.find(name.substr(0, split));
    if (range == level.ranges.end()) continue;
    std::uint32_t number = 0;
    std::from_chars_result r = std::from_chars(name.data() + split, name.data() + name.size(), number);
    if (r.ec == std::errc() && number < range->second.count) return range->second.first + Register(number);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Names::find_label(std::string_view name, Scope scope) const {
  for (;; scope = levels_[scope].parent) {
    auto label = levels_[scope].labels.find(name);
    if (label != levels_[scope].labels.end()) return label->second;
    if (scope == 0) return std::nullopt;
  }
}

}  // namespace flashback::emulator
