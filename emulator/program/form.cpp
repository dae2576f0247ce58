#include "emulator/program/form.h"

#include <fmt/format.h>

#include <stdexcept>

namespace flashback::emulator {
namespace {

// ".x" or "::x" without its dot or colons.
std::string_view bare(std::string_view piece) {
  const std::size_t start = piece.find_first_not_of(".:");
  return start == std::string_view::npos ? std::string_view() : piece.substr(start);
}

bool at_boundary(std::string_view rest) {
  return rest.empty() || rest[0] == '.' || rest[0] == ':';
}

}  // namespace

std::string_view first_piece(std::string_view opcode) {
  return opcode.substr(0, opcode.find_first_of(".:"));
}

Form::Form(std::string_view text) : text_(text) {
  for (std::size_t i = 0; i < text.size();) {
    Element element;
    const char open = text[i];
    if (open == '(' || open == '{') {
      const std::size_t close = text.find(open == '(' ? ')' : '}', i);
      if (close == std::string_view::npos) {
        throw std::invalid_argument(fmt::format("the form `{}` has no end to its `{}`", text, open));
      }
      std::string_view inside = text.substr(i + 1, close - i - 1);
      for (std::size_t bar; (bar = inside.find('|')) != std::string_view::npos;
           inside = inside.substr(bar + 1)) {
        element.alternatives.push_back(inside.substr(0, bar));
      }
      element.alternatives.push_back(inside);
      element.optional = open == '{';
      element.is_choice = open == '(' || element.alternatives.size() > 1;
      i = close + 1;
    } else {
      const std::size_t stop = std::min(text.find_first_of("({", i), text.size());
      element.alternatives.push_back(text.substr(i, stop - i));
      i = stop;
    }
    elements_.push_back(std::move(element));
  }
  if (elements_.empty() || elements_[0].is_choice || elements_[0].optional) {
    throw std::invalid_argument(fmt::format("the form `{}` must start with a plain piece", text));
  }
  first_piece_ = emulator::first_piece(elements_[0].alternatives[0]);
}

bool Form::match(std::string_view opcode, std::vector<std::string_view>* choices) const {
  choices->clear();
  return match_from(0, opcode, choices);
}

bool Form::match_from(std::size_t index, std::string_view rest,
                      std::vector<std::string_view>* choices) const {
  if (index == elements_.size()) return rest.empty();
  const Element& element = elements_[index];
  const std::size_t taken = choices->size();
  for (std::string_view alternative : element.alternatives) {
    if (!rest.starts_with(alternative) || !at_boundary(rest.substr(alternative.size()))) continue;
    if (element.is_choice) choices->push_back(bare(alternative));
    if (match_from(index + 1, rest.substr(alternative.size()), choices)) return true;
    choices->resize(taken);
  }
  if (!element.optional) return false;
  if (element.is_choice) choices->push_back({});
  if (match_from(index + 1, rest, choices)) return true;
  choices->resize(taken);
  return false;
}

}  // namespace flashback::emulator
