#include "program/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "program/failure.h"

namespace flashback::program {
namespace {

std::string shown(const std::string& text) {
  return text.empty() ? "empty" : text;
}

}  // namespace

std::int64_t parse_whole(const std::string& argument, const std::string& text, std::int64_t least,
                         std::int64_t most) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool whole = stop == end && error != std::errc::invalid_argument;
  if (whole && error == std::errc() && value >= least && value <= most) return value;

  const std::string rule =
      fmt::format("{} is {}; it must be a whole number from {} to {}", argument, shown(text), least, most);
  if (!whole) refuse(rule);
  if (error == std::errc::result_out_of_range) value = text[0] == '-' ? least : most;
  refuse(fmt::format("{}; nearest accepted: {}", rule, std::clamp(value, least, most)));
}

double parse_positive(const std::string& argument, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop == end && error == std::errc() && std::isfinite(value) && value > 0) return value;
  refuse(fmt::format("{} is {}; it must be a finite number greater than 0, such as 0.125", argument,
                     shown(text)));
}

void refuse_word(const std::string& argument, const std::string& text,
                 const std::vector<std::string_view>& accepted) {
  refuse(fmt::format("{} is {}; it must be one of {}", argument, shown(text), fmt::join(accepted, ", ")));
}

}  // namespace flashback::program
