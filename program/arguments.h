// Values from the command line. What is not a number in its range or one of the accepted words is refused
// with a sentence.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace flashback::program {

// "--batch is 0; it must be a whole number from 1 to 65535; nearest accepted: 1"
std::int64_t parse_whole(const std::string& argument, const std::string& text, std::int64_t least,
                         std::int64_t most);

// A finite number > 0.
double parse_positive(const std::string& argument, const std::string& text);

[[noreturn]] void refuse_word(const std::string& argument, const std::string& text,
                              const std::vector<std::string_view>& accepted);

// The one of `choices` that name() calls `text`.
template <class Choice>
Choice parse_choice(const std::string& argument, const std::string& text,
                    std::initializer_list<Choice> choices) {
  std::vector<std::string_view> accepted;
  for (const Choice choice : choices) {
    if (name(choice) == text) return choice;
    accepted.push_back(name(choice));
  }
  refuse_word(argument, text, accepted);
}

}  // namespace flashback::program
