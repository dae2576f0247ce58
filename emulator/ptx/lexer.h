// Characters -> words and numbers, with the position of each. Blanks and comments vanish here, but for the
// marks among them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/ptx/module.h"

namespace flashback::emulator::ptx {

// Thrown inside the parser only; parse() turns it into ParseResult::error.
class SyntaxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Number {
  Operand::Kind kind;  // kInteger, kFloat or kDouble
  std::uint64_t bits;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : next_(text.data()), end_(text.data() + text.size()) {
    line_start_ = next_;
    skip_blanks();
  }

  // The first character of the next token; '\0' at the end of the text.
  char peek() const { return next_ == end_ ? '\0' : *next_; }
  bool at_end() const { return next_ == end_; }
  Position here() const { return {line_, std::uint32_t(next_ - line_start_) + 1}; }

  // Takes the character when it comes next.
  bool accept(char c) {
    if (peek() != c) return false;
    ++next_;
    skip_blanks();
    return true;
  }
  void expect(char c, std::string_view after);

  // A name with its dotted and `::` continuation: "fma.rn.f32", "%tid.x", ".mbarrier::complete_tx::bytes". A
  // leading dot is part of a directive.
  std::string_view word(std::string_view what);
  // Whether a word starts here.
  bool word_follows() const;
  // A directive: a dot and one name, without continuation (".reg", ".b32").
  std::string_view directive(std::string_view what);
  bool number_follows() const;
  Number number(std::string_view what);
  // The characters of the number that comes next, as they stand: "9.0".
  std::string_view verbatim_number(std::string_view what);
  std::uint64_t integer(std::string_view what);
  std::string_view quoted(std::string_view what);
  // From `{` to its `}`, comments and strings apart.
  void skip_braces();
  // The marks passed since the last call.
  std::vector<Mark> take_marks() { return std::exchange(marks_, {}); }

  // "PTX line 3, column 7: expected ..., found `x`"
  [[noreturn]] void fail_expected(std::string_view expected) const;
  [[noreturn]] static void fail_at(Position at, std::string_view sentence);

 private:
  void skip_blanks();
  std::string found() const;

  const char* next_;
  const char* end_;
  const char* line_start_;
  std::uint32_t line_ = 1;
  std::vector<Mark> marks_;
};

}  // namespace flashback::emulator::ptx
