// The productions of the grammar, one function each. All of them throw SyntaxError.
#pragma once

#include <optional>

#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"

namespace flashback::emulator::ptx {

// Bytes of a fundamental type written as "b32" or "f16x2"; 0 for "pred", nothing for a word that is no type.
std::optional<std::uint32_t> type_bytes(std::string_view type);

// What follows a state space: `.align 16 .b8 name[64] = {...}` and further names, up to the `;`.
void parse_variables(Lexer& lexer, Space space, bool is_extern, std::vector<Variable>* variables);
// `.param .u64 .ptr .align 1 name` of a parameter list, its offset not yet set.
Parameter parse_parameter(Lexer& lexer);

Operand parse_operand(Lexer& lexer);
// The body of an entry or a function, after its `{` and up to its `}`.
std::vector<Statement> parse_body(Lexer& lexer);

// The space of ".shared" and its like.
std::optional<Space> space_of(std::string_view directive);

}  // namespace flashback::emulator::ptx
