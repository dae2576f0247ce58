#include "emulator/ptx/lexer.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace flashback::emulator::ptx {
namespace {

enum : std::uint8_t { kBlank = 1, kNameStart = 2, kDigit = 4, kHexDigit = 8 };

constexpr std::array<std::uint8_t, 256> kClass = [] {
  std::array<std::uint8_t, 256> classes{};
  for (char c : {' ', '\t', '\r', '\n', '\f', '\v'}) classes[std::uint8_t(c)] = kBlank;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] |= kNameStart, classes[c - 'a' + 'A'] |= kNameStart;
  for (char c : {'_', '$', '%'}) classes[std::uint8_t(c)] |= kNameStart;
  for (int c = '0'; c <= '9'; ++c) classes[c] |= kDigit | kHexDigit;
  for (int c = 'a'; c <= 'f'; ++c) classes[c] |= kHexDigit, classes[c - 'a' + 'A'] |= kHexDigit;
  return classes;
}();

bool is(char c, int which) {
  return kClass[std::uint8_t(c)] & which;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is(text.front(), kBlank)) text.remove_prefix(1);
  while (!text.empty() && is(text.back(), kBlank)) text.remove_suffix(1);
  return text;
}

}  // namespace

void Lexer::skip_blanks() {
  while (next_ != end_) {
    if (is(*next_, kBlank)) {
      if (*next_++ == '\n') {
        ++line_;
        line_start_ = next_;
      }
    } else if (*next_ == '/' && end_ - next_ > 1 && next_[1] == '/') {
      const void* newline = std::memchr(next_, '\n', end_ - next_);
      const char* const stop = newline ? static_cast<const char*>(newline) : end_;
      if (stop - next_ > 2 && next_[2] == '@') marks_.push_back({trimmed({next_ + 3, stop})});
      next_ = stop;
    } else if (*next_ == '/' && end_ - next_ > 1 && next_[1] == '*') {
      Position start = here();
      for (next_ += 2;; ++next_) {
        if (end_ - next_ < 2) fail_at(start, "the comment that starts here does not end");
        if (next_[0] == '*' && next_[1] == '/') break;
        if (*next_ == '\n') {
          ++line_;
          line_start_ = next_ + 1;
        }
      }
      next_ += 2;
    } else {
      return;
    }
  }
}

std::string Lexer::found() const {
  if (at_end()) return "the end of the text";
  const char* stop = next_;
  while (stop != end_ && stop - next_ < 40 && !is(*stop, kBlank) &&
         (stop == next_ || !std::strchr(",;[]{}()", *stop)))
    ++stop;
  return fmt::format("`{}`", std::string_view(next_, stop - next_));
}

void Lexer::fail_at(Position at, std::string_view sentence) {
  throw SyntaxError(fmt::format("PTX line {}, column {}: {}", at.line, at.column, sentence));
}

void Lexer::fail_expected(std::string_view expected) const {
  fail_at(here(), fmt::format("expected {}, found {}", expected, found()));
}

void Lexer::expect(char c, std::string_view after) {
  if (!accept(c)) fail_expected(fmt::format("`{}` after {}", c, after));
}

bool Lexer::word_follows() const {
  return next_ != end_ && is(*next_, kNameStart);
}

std::string_view Lexer::word(std::string_view what) {
  const char* start = next_;
  const char* p = next_;
  if (p != end_ && *p == '.') ++p;
  if (p == end_ || !is(*p, kNameStart)) fail_expected(what);
  while (p != end_) {
    if (is(*p, kNameStart | kDigit)) {
      ++p;
    } else if (*p == '.' && end_ - p > 1 && is(p[1], kNameStart | kDigit)) {
      p += 2;
    } else if (*p == ':' && end_ - p > 2 && p[1] == ':' && is(p[2], kNameStart | kDigit)) {
      p += 3;
    } else {
      break;
    }
  }
  next_ = p;
  skip_blanks();
  return {start, std::size_t(p - start)};
}

std::string_view Lexer::directive(std::string_view what) {
  const char* start = next_;
  const char* p = next_;
  if (p == end_ || *p != '.') fail_expected(what);
  for (++p; p != end_ && is(*p, kNameStart | kDigit);) ++p;
  if (p == start + 1) fail_expected(what);
  next_ = p;
  skip_blanks();
  return {start, std::size_t(p - start)};
}

bool Lexer::number_follows() const {
  if (next_ == end_) return false;
  return is(*next_, kDigit) || *next_ == '-' || (*next_ == '.' && end_ - next_ > 1 && is(next_[1], kDigit));
}

Number Lexer::number(std::string_view what) {
  const Position at = here();
  const bool negative = accept('-');
  if (next_ == end_ || !(is(*next_, kDigit) || *next_ == '.')) fail_expected(what);
  const char* p = next_;
  const char second = end_ - p > 1 && *p == '0' ? char(p[1] | 0x20) : ' ';
  Number result{Operand::Kind::kInteger, 0};

  auto convert = [&](const char* digits, int base) {
    std::from_chars_result r = std::from_chars(digits, end_, result.bits, base);
    if (r.ec == std::errc::result_out_of_range) fail_at(at, "the literal does not fit into 64 bits");
    if (r.ec != std::errc()) fail_at(at, fmt::format("the literal {} has no digits", found()));
    return r.ptr;
  };
  if (second == 'x') {
    p = convert(p + 2, 16);
  } else if (second == 'b') {
    p = convert(p + 2, 2);
  } else if (second == 'f' || second == 'd') {
    const int digits = second == 'f' ? 8 : 16;
    const char* last = p + 2;
    while (last != end_ && is(*last, kHexDigit)) ++last;
    if (last - p != digits + 2) {
      fail_at(at, fmt::format("the literal {} must have {} hexadecimal digits", found(), digits));
    }
    result.kind = second == 'f' ? Operand::Kind::kFloat : Operand::Kind::kDouble;
    p = convert(p + 2, 16);
    if (negative) result.bits ^= std::uint64_t(1) << (4 * digits - 1);
  } else {
    const char* last = p;
    while (last != end_ && is(*last, kDigit)) ++last;
    if (last != end_ && (*last == '.' || (*last | 0x20) == 'e')) {
      double value = 0;
      std::from_chars_result r = std::from_chars(p, end_, value);
      if (r.ec != std::errc()) fail_at(at, fmt::format("the literal {} is not a number", found()));
      result = {Operand::Kind::kDouble, std::bit_cast<std::uint64_t>(negative ? -value : value)};
      p = r.ptr;
    } else {
      p = convert(p, *p == '0' ? 8 : 10);
    }
  }
  if (result.kind == Operand::Kind::kInteger) {
    if (p != end_ && (*p | 0x20) == 'u') ++p;
    if (negative) result.bits = -result.bits;
  }
  if (p != end_ && is(*p, kNameStart | kDigit))
    fail_at(at, fmt::format("the literal {} is not a number", found()));
  next_ = p;
  skip_blanks();
  return result;
}

std::string_view Lexer::verbatim_number(std::string_view what) {
  const char* start = next_;
  number(what);
  const char* stop = start;
  while (is(*stop, kDigit) || *stop == '.') ++stop;
  return {start, std::size_t(stop - start)};
}

std::uint64_t Lexer::integer(std::string_view what) {
  if (!number_follows()) fail_expected(what);
  const Position at = here();
  const Number n = number(what);
  if (n.kind != Operand::Kind::kInteger)
    fail_at(at, fmt::format("expected {}, found a floating-point literal", what));
  return n.bits;
}

std::string_view Lexer::quoted(std::string_view what) {
  if (peek() != '"') fail_expected(what);
  const char* start = next_ + 1;
  const char* p = start;
  while (p != end_ && *p != '"' && *p != '\n') p += *p == '\\' && end_ - p > 1 ? 2 : 1;
  if (p == end_ || *p != '"') fail_at(here(), "the string that starts here does not end on its line");
  next_ = p + 1;
  skip_blanks();
  return {start, std::size_t(p - start)};
}

void Lexer::skip_braces() {
  const Position start = here();
  int depth = 0;
  do {
    if (at_end()) fail_at(start, "the `{` here has no `}`");
    if (peek() == '"') {
      quoted("a string");
      continue;
    }
    depth += peek() == '{' ? 1 : peek() == '}' ? -1 : 0;
    ++next_;
    skip_blanks();
  } while (depth > 0);
}

}  // namespace flashback::emulator::ptx
