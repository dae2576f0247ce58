// The opcode side of a row: "fma.rn{.ftz}(.f32|.f64)" as elements, matched against an opcode as written.
#pragma once

#include <string_view>
#include <vector>

namespace flashback::emulator {

class Form {
 public:
  // Throws std::invalid_argument when the row is malformed.
  explicit Form(std::string_view text);

  // Whether the opcode has this form; `choices` receives what each choice took, empty where it was left out.
  bool match(std::string_view opcode, std::vector<std::string_view>* choices) const;

  // "fma": the opcode's first piece, which no row leaves open.
  std::string_view first_piece() const { return first_piece_; }
  std::string_view text() const { return text_; }

 private:
  struct Element {
    std::vector<std::string_view> alternatives;  // one for a literal and for `{.x}`
    bool optional = false;
    bool is_choice = false;
  };
  bool match_from(std::size_t element, std::string_view rest, std::vector<std::string_view>* choices) const;

  std::string_view text_, first_piece_;
  std::vector<Element> elements_;
};

// The piece at the start of an opcode, up to its first dot or colon.
std::string_view first_piece(std::string_view opcode);

}  // namespace flashback::emulator
