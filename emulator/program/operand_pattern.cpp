#include "emulator/program/operand_pattern.h"

#include <fmt/format.h>

#include <stdexcept>

namespace flashback::emulator {
namespace {

using Kind = OperandPattern::Kind;
using Width = OperandPattern::Width;

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text), rest_(text) {}

  std::vector<OperandPattern> parse() {
    std::vector<OperandPattern> patterns;
    skip_blanks();
    if (rest_.empty()) return patterns;
    do patterns.push_back(parse_operand(patterns.empty()));
    while (accept(','));
    if (!rest_.empty()) fail();
    return patterns;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::invalid_argument(
        fmt::format("the operands `{}` of a row cannot be read at `{}`", text_, rest_));
  }
  void skip_blanks() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool accept(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    skip_blanks();
    return true;
  }
  bool accept(char c) { return accept(std::string_view(&c, 1)); }
  void expect(std::string_view word) {
    if (!accept(word)) fail();
  }

  OperandPattern parse_operand(bool first) {
    const std::string_view start = rest_;
    OperandPattern pattern = parse_unit(first);
    if (accept('|')) {
      OperandPattern pair;
      pair.kind = Kind::kPair;
      pair.parts.push_back(std::move(pattern));
      pair.parts.push_back(parse_unit(false));
      pair.parts[1].read = false;
      pair.parts[1].written = true;
      pair.parts[1].optional = accept('?');
      pattern = std::move(pair);
    } else {
      pattern.optional = accept('?');
    }
    pattern.text = start.substr(0, start.size() - rest_.size());
    while (pattern.text.ends_with(' ')) pattern.text.remove_suffix(1);
    return pattern;
  }

  OperandPattern parse_unit(bool first) {
    OperandPattern pattern;
    if (accept('[')) {
      pattern.kind = Kind::kBrackets;
      OperandPattern address;
      address.place = parse_place();
      address.width = accept(':') ? parse_width() : Width::kAddress;
      pattern.parts.push_back(std::move(address));
      while (accept(',')) pattern.parts.push_back(parse_operand(false));
      expect("]");
      return pattern;
    }
    if (accept("@:label")) {
      pattern.kind = Kind::kLabel;
      return pattern;
    }
    if (accept("i:imm")) {
      pattern.kind = Kind::kLiteral;
      return pattern;
    }
    const bool both = accept('+');
    pattern.negatable = accept('!');
    if (accept("list:{")) {
      pattern.kind = Kind::kBraces;
      pattern.width = parse_width();
      expect("}");
      if (accept('x')) {
        while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
          pattern.count = pattern.count * 10 + (rest_[0] - '0');
          rest_.remove_prefix(1);
        }
        if (pattern.count == 0) fail();
        skip_blanks();
      }
      pattern.written = first || both;
    } else {
      pattern.place = parse_place();
      expect(":");
      pattern.width = parse_width();
      pattern.written = pattern.place == 'd' || both;
    }
    pattern.read = !pattern.written || both;
    return pattern;
  }

  char parse_place() {
    for (char place : {'d', 'a', 'b', 'c', 'l'}) {
      if (accept(place)) return place;
    }
    fail();
  }

  Width parse_width() {
    if (accept("r128")) return Width::k128;
    if (accept("r16")) return Width::k16;
    if (accept("r32")) return Width::k32;
    if (accept("r64")) return Width::k64;
    if (accept('r')) return Width::kAny;
    if (accept('p')) return Width::kPredicate;
    fail();
  }

  std::string_view text_, rest_;
};

}  // namespace

std::vector<OperandPattern> parse_operand_patterns(std::string_view text) {
  return PatternParser(text).parse();
}

}  // namespace flashback::emulator
