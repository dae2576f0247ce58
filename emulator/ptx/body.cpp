// The body of an entry or a function: statements and operands.
#include <fmt/format.h>

#include "emulator/ptx/grammar.h"

namespace flashback::emulator::ptx {
namespace {

std::vector<Operand> parse_parts(Lexer& lexer, char close) {
  std::vector<Operand> parts;
  if (lexer.accept(close)) return parts;
  do parts.push_back(parse_operand(lexer));
  while (lexer.accept(','));
  lexer.expect(close, "an operand");
  return parts;
}

Operand parse_simple_operand(Lexer& lexer) {
  Operand operand;
  operand.at = lexer.here();
  if (lexer.accept('!')) operand.negated = true;
  if (lexer.word_follows()) {
    operand.name = lexer.word("an operand");
    if (operand.name == "_") return operand;
    operand.kind = Operand::Kind::kName;
    if (lexer.accept('+')) {
      operand.displacement = std::int64_t(lexer.integer("an offset"));
    } else if (lexer.peek() == '-') {
      operand.displacement = std::int64_t(lexer.integer("an offset"));
    }
  } else if (!operand.negated && lexer.number_follows()) {
    const Number number = lexer.number("an operand");
    operand.kind = number.kind;
    operand.bits = number.bits;
  } else {
    lexer.fail_expected(operand.negated ? "a predicate after `!`" : "an operand");
  }
  return operand;
}

Instruction parse_instruction(Lexer& lexer, Instruction instruction) {
  if (lexer.accept(';')) return instruction;
  do instruction.operands.push_back(parse_operand(lexer));
  while (lexer.accept(','));
  if (!lexer.accept(';')) {
    // `call (result), name, (arguments)` has its commas; whatever else stands here is not ours to guess.
    lexer.fail_expected(fmt::format("`,` or `;` after an operand of `{}`", instruction.opcode));
  }
  return instruction;
}

void parse_registers(Lexer& lexer, std::vector<Statement>* body) {
  Registers registers;
  registers.at = lexer.here();
  registers.type = lexer.directive("the type of a register").substr(1);
  if (!type_bytes(registers.type)) {
    Lexer::fail_at(registers.at, fmt::format("`.{}` is no type of a register; expected .pred, .b16 ... .f64",
                                             registers.type));
  }
  do {
    registers.at = lexer.here();
    registers.prefix = lexer.word("the name of a register");
    registers.count = 0;
    if (lexer.accept('<')) {
      const std::uint64_t count = lexer.integer("the number of registers");
      if (count == 0 || count > 1'000'000) {
        Lexer::fail_at(registers.at,
                       fmt::format("{} registers `{}`: expected 1 to 1000000", count, registers.prefix));
      }
      registers.count = std::uint32_t(count);
      lexer.expect('>', "the number of registers");
    }
    body->push_back(registers);
  } while (lexer.accept(','));
  lexer.expect(';', "the declaration of registers");
}

// .loc file line column {, function_name label {+ n}, inlined_at file line column}
Location parse_location(Lexer& lexer) {
  Location location;
  location.file = std::uint32_t(lexer.integer("a file number"));
  location.line = std::uint32_t(lexer.integer("a line number"));
  lexer.integer("a column number");
  if (lexer.accept(',')) {
    lexer.word("`function_name`");
    lexer.word("a label");
    if (lexer.accept('+')) lexer.integer("an offset");
    lexer.expect(',', "the function's name");
    lexer.word("`inlined_at`");
    location.caller_file = std::uint32_t(lexer.integer("a file number"));
    location.caller_line = std::uint32_t(lexer.integer("a line number"));
    lexer.integer("a column number");
  }
  return location;
}

void parse_directive(Lexer& lexer, std::vector<Statement>* body) {
  const Position at = lexer.here();
  const std::string_view word = lexer.directive("a directive");
  if (word == ".reg") {
    parse_registers(lexer, body);
  } else if (word == ".loc") {
    body->push_back(parse_location(lexer));
  } else if (word == ".pragma") {
    do lexer.quoted("a pragma");
    while (lexer.accept(','));
    lexer.expect(';', "a pragma");
  } else if (std::optional<Space> space = space_of(word)) {
    std::vector<Variable> variables;
    parse_variables(lexer, *space, false, &variables);
    for (Variable& variable : variables) body->push_back(std::move(variable));
  } else {
    Lexer::fail_at(
        at, fmt::format("the directive `{}` is not known inside an entry; known are .reg, .loc, .pragma, "
                        ".shared, .local, .param, .global, .const",
                        word));
  }
}

}  // namespace

Operand parse_operand(Lexer& lexer) {
  Operand operand;
  operand.at = lexer.here();
  if (lexer.accept('[')) {
    operand.kind = Operand::Kind::kBrackets;
    operand.parts = parse_parts(lexer, ']');
  } else if (lexer.accept('{')) {
    operand.kind = Operand::Kind::kBraces;
    operand.parts = parse_parts(lexer, '}');
  } else if (lexer.accept('(')) {
    operand.kind = Operand::Kind::kParens;
    operand.parts = parse_parts(lexer, ')');
  } else {
    operand = parse_simple_operand(lexer);
    if (lexer.accept('|')) {
      Operand pair;
      pair.kind = Operand::Kind::kPair;
      pair.at = operand.at;
      pair.parts.push_back(std::move(operand));
      pair.parts.push_back(parse_simple_operand(lexer));
      operand = std::move(pair);
    }
  }
  return operand;
}

std::vector<Statement> parse_body(Lexer& lexer) {
  std::vector<Statement> body;
  std::vector<Position> open;
  for (;;) {
    for (const Mark& mark : lexer.take_marks()) body.push_back(mark);
    const Position at = lexer.here();
    if (lexer.accept('}')) {
      if (open.empty()) return body;
      open.pop_back();
      body.push_back(ScopeEnd{});
    } else if (lexer.accept('{')) {
      open.push_back(at);
      body.push_back(ScopeBegin{});
    } else if (lexer.accept(';')) {
      continue;
    } else if (lexer.peek() == '.') {
      parse_directive(lexer, &body);
    } else if (lexer.at_end()) {
      if (!open.empty()) Lexer::fail_at(open.back(), "the `{` here has no `}` before the end of the text");
      lexer.fail_expected("the `}` of the entry");
    } else {
      Instruction instruction;
      instruction.at = at;
      if (lexer.accept('@')) {
        instruction.guard_negated = lexer.accept('!');
        instruction.guard = lexer.word("a predicate after `@`");
        instruction.at = lexer.here();
        instruction.opcode = lexer.word("an opcode after the guard");
      } else {
        instruction.opcode = lexer.word("an instruction, a label or a directive");
        if (lexer.accept(':')) {
          body.push_back(Label{instruction.opcode, at});
          continue;
        }
      }
      body.push_back(parse_instruction(lexer, std::move(instruction)));
    }
  }
}

}  // namespace flashback::emulator::ptx
