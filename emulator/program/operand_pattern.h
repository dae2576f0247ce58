// The operand side of a row: "d:r32|l:p?, [a:r64, list:{r32}x4], i:imm?" as patterns.
#pragma once

#include <string_view>
#include <vector>

namespace flashback::emulator {

struct OperandPattern {
  enum class Kind {
    kRegister,  // d:r32
    kBrackets,  // [a:r64, ...]: parts[0] is the address
    kBraces,    // list:{r32}x4: `width` of each
    kPair,      // d:r32|l:p: two parts
    kLiteral,   // i:imm
    kLabel,     // @:label
  };
  // kAny: 16, 32 or 64; kAddress: 32 or 64
  enum class Width { k16, k32, k64, k128, kAny, kAddress, kPredicate };

  Kind kind = Kind::kRegister;
  Width width = Width::kAny;
  char place = 'l';  // d, a, b, c or l (the list)
  bool optional = false;
  bool negatable = false;
  bool read = true, written = false;
  int count = 0;  // of a brace list; 0: any
  std::vector<OperandPattern> parts;
  std::string_view text;
};

// Throws std::invalid_argument when the row is malformed.
std::vector<OperandPattern> parse_operand_patterns(std::string_view text);

}  // namespace flashback::emulator
