// What a name means where it stands: scopes of registers, variables and labels, the inner ones first.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/program/draft.h"
#include "emulator/ptx/module.h"

namespace flashback::emulator {

struct Symbol {
  enum class Kind { kRegister, kVariable, kParameter };
  Kind kind = Kind::kRegister;
  Register register_number = kNone;
  const ptx::Variable* variable = nullptr;
  const ptx::Parameter* parameter = nullptr;
};

class Names {
 public:
  using Scope = std::size_t;

  Names() { levels_.emplace_back(); }

  void enter() { enter_within(current_); }
  void leave() { current_ = levels_[current_].parent; }
  // Into a scope that sees the names of `parent` instead of those that stand around it; out of it again with
  // `go_to` the scope that was current before.
  void enter_within(Scope parent) {
    levels_.emplace_back();
    levels_.back().parent = parent;
    current_ = levels_.size() - 1;
  }
  void go_to(Scope scope) { current_ = scope; }
  Scope current() const { return current_; }

  // Each is false when the scope has the name already.
  bool declare(std::string_view name, const Symbol& symbol) {
    return levels_[current_].symbols.emplace(name, symbol).second;
  }
  bool declare_range(std::string_view prefix, Register first, std::uint32_t count) {
    return levels_[current_].ranges.emplace(prefix, Range{first, count}).second;
  }
  bool declare_label(std::string_view name, std::uint32_t step) {
    return levels_[current_].labels.emplace(name, step).second;
  }

  std::optional<Symbol> find(std::string_view name) const;
  // A label may stand after the branch, so it is looked up from the branch's scope once the body is read.
  std::optional<std::uint32_t> find_label(std::string_view name, Scope scope) const;

 private:
  struct Range {
    Register first;
    std::uint32_t count;
  };
  struct Level {
    Scope parent = 0;
    std::unordered_map<std::string_view, Symbol> symbols;
    std::unordered_map<std::string_view, Range> ranges;  // by prefix
    std::unordered_map<std::string_view, std::uint32_t> labels;
  };
  static std::optional<Register> find_in_ranges(const Level& scope, std::string_view name);

  std::vector<Level> levels_;
  Scope current_ = 0;
};

}  // namespace flashback::emulator
