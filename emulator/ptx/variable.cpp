// Variables: of a module, of a body, of a parameter list.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "emulator/ptx/grammar.h"

namespace flashback::emulator::ptx {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t(1) << 32;  // of one variable: beyond any GPU's use of one

struct Declared {
  std::string_view type;
  std::uint32_t element_bytes = 0;
  std::uint32_t alignment = 0;  // 0: natural
};

// `.align 8 .v2 .f32` in any order. Left out: `.ptr .global .align 1` of a parameter's pointee, and
// `.attribute(.managed)`, as host and device share their memory here.
Declared parse_type(Lexer& lexer) {
  Declared declared;
  std::uint32_t vector = 1;
  bool pointee = false;
  while (lexer.peek() == '.') {
    const Position at = lexer.here();
    const std::string_view word = lexer.directive("a type");
    if (word == ".align") {
      const std::uint64_t bytes = lexer.integer("an alignment");
      if (bytes > 4096 || !std::has_single_bit(bytes)) {
        Lexer::fail_at(at, fmt::format("the alignment {} is not a power of two up to 4096", bytes));
      }
      if (!pointee) declared.alignment = std::uint32_t(bytes);
    } else if (word == ".attribute") {
      lexer.expect('(', "an attribute");
      const Position what = lexer.here();
      if (lexer.directive("an attribute") != ".managed") Lexer::fail_at(what, "expected `.managed`");
      lexer.expect(')', "an attribute");
    } else if (word == ".ptr") {
      pointee = true;
    } else if (word == ".v2" || word == ".v4") {
      vector = word[2] - '0';
    } else if (pointee && space_of(word)) {
      continue;
    } else if (std::optional<std::uint32_t> bytes = type_bytes(word.substr(1)); bytes && *bytes != 0) {
      declared.type = word.substr(1);
      declared.element_bytes = *bytes * vector;
    } else {
      Lexer::fail_at(at, fmt::format("`{}` is no type of a variable; expected .b8 ... .f64 or .align", word));
    }
  }
  if (declared.type.empty()) lexer.fail_expected("the type of a variable, such as .b32");
  if (declared.alignment == 0) declared.alignment = declared.element_bytes;
  return declared;
}

// `[4][16]`; false for `[]`.
bool parse_extents(Lexer& lexer, std::uint64_t* elements) {
  bool sized = true;
  *elements = 1;
  while (lexer.accept('[')) {
    if (lexer.peek() == ']') {
      sized = false;
    } else {
      const Position at = lexer.here();
      const std::uint64_t extent = lexer.integer("the extent of an array");
      if (extent > kMostBytes || *elements * extent > kMostBytes) {
        Lexer::fail_at(at, fmt::format("an array of {} elements and more is too large", extent));
      }
      *elements *= extent;
    }
    lexer.expect(']', "the extent of an array");
  }
  return sized;
}

void append(std::vector<std::byte>& bytes, std::uint64_t value, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i) bytes.push_back(std::byte(value >> (8 * i)));
}

// The value in the type's own bits: a decimal fraction may stand for an .f32.
std::uint64_t element_bits(const Number& number, std::string_view type) {
  if (number.kind == Operand::Kind::kDouble && type == "f32") {
    return std::bit_cast<std::uint32_t>(float(std::bit_cast<double>(number.bits)));
  }
  return number.bits;
}

void parse_initial(Lexer& lexer, const Declared& declared, Variable* variable) {
  if (lexer.accept('{')) {
    if (lexer.accept('}')) return;
    do parse_initial(lexer, declared, variable);
    while (lexer.accept(','));
    lexer.expect('}', "the initialisers");
    return;
  }
  const std::uint32_t size = *type_bytes(declared.type);
  const Position at = lexer.here();
  if (lexer.number_follows()) {
    append(variable->initial, element_bits(lexer.number("a number"), declared.type), size);
  } else {
    Relocation relocation{variable->initial.size(), lexer.word("an initialiser"), 0};
    if (relocation.name == "generic") {
      lexer.expect('(', "`generic`");
      relocation.name = lexer.word("the name of a variable");
      lexer.expect(')', "the name of a variable");
    }
    if (lexer.accept('+')) relocation.addend = std::int64_t(lexer.integer("an offset"));
    if (size != 8) Lexer::fail_at(at, fmt::format("an address does not fit into .{}", declared.type));
    variable->relocations.push_back(relocation);
    append(variable->initial, 0, 8);
  }
  if (variable->initial.size() > variable->bytes && variable->bytes != 0) {
    Lexer::fail_at(
        at, fmt::format("`{}` of {} bytes has more initialisers than that", variable->name, variable->bytes));
  }
}

}  // namespace

std::optional<std::uint32_t> type_bytes(std::string_view type) {
  static constexpr struct {
    std::string_view name;
    std::uint32_t bytes;
  } kTypes[] = {{"b32", 4}, {"b64", 8}, {"pred", 0}, {"f32", 4},   {"b16", 2},   {"b8", 1},    {"u32", 4},
                {"s32", 4}, {"u64", 8}, {"s64", 8},  {"f64", 8},   {"u16", 2},   {"s16", 2},   {"f16", 2},
                {"u8", 1},  {"s8", 1},  {"bf16", 2}, {"b128", 16}, {"f16x2", 4}, {"bf16x2", 4}};
  for (const auto& t : kTypes) {
    if (t.name == type) return t.bytes;
  }
  return std::nullopt;
}

std::optional<Space> space_of(std::string_view directive) {
  if (directive == ".global") return Space::kGlobal;
  if (directive == ".shared") return Space::kShared;
  if (directive == ".const") return Space::kConstant;
  if (directive == ".local") return Space::kLocal;
  if (directive == ".param") return Space::kParameter;
  return std::nullopt;
}

void parse_variables(Lexer& lexer, Space space, bool is_extern, std::vector<Variable>* variables) {
  const Declared declared = parse_type(lexer);
  do {
    Variable variable;
    variable.space = space;
    variable.is_extern = is_extern;
    variable.at = lexer.here();
    variable.name = lexer.word("the name of a variable");
    variable.type = declared.type;
    variable.alignment = declared.alignment;
    std::uint64_t elements = 1;
    const bool sized = parse_extents(lexer, &elements);
    variable.bytes = sized ? elements * declared.element_bytes : 0;
    if (lexer.accept('=')) {
      parse_initial(lexer, declared, &variable);
      if (!sized) variable.bytes = variable.initial.size();
    }
    variables->push_back(std::move(variable));
  } while (lexer.accept(','));
  lexer.expect(';', "the declaration of a variable");
}

Parameter parse_parameter(Lexer& lexer) {
  const Position at = lexer.here();
  if (lexer.directive("a parameter") != ".param") Lexer::fail_at(at, "expected `.param`");
  const Declared declared = parse_type(lexer);
  Parameter parameter;
  parameter.name = lexer.word("the name of a parameter");
  parameter.type = declared.type;
  parameter.alignment = declared.alignment;
  std::uint64_t elements = 1;
  if (!parse_extents(lexer, &elements)) Lexer::fail_at(at, "a parameter needs a size");
  parameter.bytes = elements * declared.element_bytes;
  return parameter;
}

}  // namespace flashback::emulator::ptx
