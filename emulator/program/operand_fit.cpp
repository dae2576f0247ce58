// Whether operands fit a row, and the sentence that says why they do not.
#include <fmt/format.h>

#include "emulator/program/operand_binder.h"
#include "emulator/program/special.h"

namespace flashback::emulator {
namespace {

using Kind = OperandPattern::Kind;
using Width = OperandPattern::Width;
using ptx::Operand;

bool takes(Width width, int bytes) {
  switch (width) {
    case Width::k16:
      return bytes == 2;
    case Width::k32:
      return bytes == 4;
    case Width::k64:
      return bytes == 8;
    case Width::k128:
      return bytes == 16;
    case Width::kAny:
      return bytes == 2 || bytes == 4 || bytes == 8;
    case Width::kAddress:
      return bytes == 4 || bytes == 8;
    case Width::kPredicate:
      return bytes == 0;
  }
  return false;
}

std::string_view words(Width width) {
  switch (width) {
    case Width::k16:
      return "16 bits";
    case Width::k32:
      return "32 bits";
    case Width::k64:
      return "64 bits";
    case Width::k128:
      return "128 bits";
    case Width::kAny:
      return "16, 32 or 64 bits";
    case Width::kAddress:
      return "32 or 64 bits";
    case Width::kPredicate:
      return "a predicate";
  }
  return {};
}

std::string words_of_register(int bytes) {
  return bytes == 0 ? "a predicate" : fmt::format("a register of {} bits", 8 * bytes);
}

std::string_view words(Operand::Kind kind) {
  switch (kind) {
    case Operand::Kind::kName:
      return "a name";
    case Operand::Kind::kInteger:
      return "an integer";
    case Operand::Kind::kFloat:
      return "a binary32 literal";
    case Operand::Kind::kDouble:
      return "a binary64 literal";
    case Operand::Kind::kBrackets:
      return "an address in brackets";
    case Operand::Kind::kBraces:
      return "a list in braces";
    case Operand::Kind::kParens:
      return "a list in parentheses";
    case Operand::Kind::kPair:
      return "a pair with `|`";
    case Operand::Kind::kSink:
      return "the sink `_`";
  }
  return {};
}

std::string wrong_kind(const OperandPattern& pattern, const Operand& operand) {
  return fmt::format("it is {}, the form has `{}` there", words(operand.kind), pattern.text);
}

bool fits_integer(std::uint64_t bits, int width) {
  const std::int64_t value = std::int64_t(bits);
  return width == 64 || (value >= -(std::int64_t{1} << (width - 1)) && value < std::int64_t{1} << width);
}

}  // namespace

std::string OperandBinder::misfit(const Patterns& patterns, const Operands& operands) const {
  Assignment assignment(patterns.size());
  Reason reason;
  if (assign(patterns, 0, operands, 0, &assignment, &reason)) return {};
  return reason.text;
}

bool OperandBinder::assign(const Patterns& patterns, std::size_t pattern, const Operands& operands,
                           std::size_t operand, Assignment* assignment, Reason* reason) const {
  auto refuse = [&](std::string text) {
    if (reason->text.empty() || operand > reason->depth) *reason = {operand, std::move(text)};
    return false;
  };
  if (pattern == patterns.size()) {
    if (operand == operands.size()) return true;
    return refuse(fmt::format("{} operands stand there, the form has no place for number {}", operands.size(),
                              operand + 1));
  }
  if (operand < operands.size()) {
    std::string why = misfit(patterns[pattern], operands[operand]);
    if (why.empty()) {
      (*assignment)[pattern] = &operands[operand];
      if (assign(patterns, pattern + 1, operands, operand + 1, assignment, reason)) return true;
    } else {
      refuse(fmt::format("operand {}: {}", operand + 1, why));
    }
  } else if (!patterns[pattern].optional) {
    return refuse(
        fmt::format("{} operands stand there, `{}` is missing", operands.size(), patterns[pattern].text));
  }
  if (!patterns[pattern].optional) return false;
  (*assignment)[pattern] = nullptr;
  return assign(patterns, pattern + 1, operands, operand, assignment, reason);
}

std::string OperandBinder::misfit(const OperandPattern& pattern, const Operand& operand) const {
  switch (pattern.kind) {
    case Kind::kRegister:
      return misfit_value(pattern, operand, false);
    case Kind::kLiteral:
      return operand.kind == Operand::Kind::kInteger ? std::string() : wrong_kind(pattern, operand);
    case Kind::kLabel:
      return operand.kind == Operand::Kind::kName && !operand.negated ? std::string()
                                                                      : wrong_kind(pattern, operand);
    case Kind::kPair: {
      if (operand.kind != Operand::Kind::kPair) {
        return pattern.parts[1].optional ? misfit(pattern.parts[0], operand) : wrong_kind(pattern, operand);
      }
      std::string why = misfit(pattern.parts[0], operand.parts[0]);
      return why.empty() ? misfit(pattern.parts[1], operand.parts[1]) : why;
    }
    case Kind::kBraces: {
      if (operand.kind != Operand::Kind::kBraces) return wrong_kind(pattern, operand);
      if (pattern.count != 0 && operand.parts.size() != std::size_t(pattern.count)) {
        return fmt::format("it lists {} registers, the form takes {}", operand.parts.size(), pattern.count);
      }
      for (const Operand& part : operand.parts) {
        if (std::string why = misfit_value(pattern, part, false); !why.empty()) return why;
      }
      if (pattern.width == Width::kAny && !list_bytes(operand)) return "it lists registers of several widths";
      return {};
    }
    case Kind::kBrackets: {
      if (operand.kind != Operand::Kind::kBrackets) return wrong_kind(pattern, operand);
      if (operand.parts.empty()) return "the brackets are empty";
      if (std::string why = misfit_value(pattern.parts[0], operand.parts[0], true); !why.empty()) return why;
      const Patterns patterns(pattern.parts.begin() + 1, pattern.parts.end());
      return misfit(patterns, Operands(operand.parts.begin() + 1, operand.parts.end()));
    }
  }
  return {};
}

std::optional<int> OperandBinder::list_bytes(const Operand& list) const {
  int common = 0;
  for (const Operand& part : list.parts) {
    if (part.kind != Operand::Kind::kName) continue;
    const std::optional<Symbol> symbol = names_.find(part.name);
    int bytes = 0;
    if (symbol && symbol->kind == Symbol::Kind::kRegister) {
      bytes = draft_.registers[symbol->register_number].bytes;
    } else if (const std::optional<Special> special = special_register(part.name); !symbol && special) {
      bytes = special_bytes(*special);
    } else {
      continue;
    }
    if (common != 0 && bytes != common) return std::nullopt;
    common = bytes;
  }
  return common;
}

std::string OperandBinder::misfit_value(const OperandPattern& pattern, const Operand& operand,
                                        bool is_address) const {
  switch (operand.kind) {
    case Operand::Kind::kName:
      return misfit_name(pattern, operand, is_address);
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat:
    case Operand::Kind::kDouble:
      if (pattern.written) return "it is a literal, and the instruction writes it";
      return misfit_literal(pattern, operand);
    case Operand::Kind::kSink:
      return pattern.written ? std::string() : "it is the sink `_`, and the instruction reads it";
    default:
      return wrong_kind(pattern, operand);
  }
}

std::string OperandBinder::misfit_name(const OperandPattern& pattern, const Operand& operand,
                                       bool is_address) const {
  if (operand.name == "WARP_SZ") return {};
  if (operand.negated && !pattern.negatable)
    return fmt::format("`!{}` may not be negated here", operand.name);
  const std::optional<Symbol> symbol = names_.find(operand.name);
  if (symbol && symbol->kind == Symbol::Kind::kRegister) {
    const int bytes = draft_.registers[symbol->register_number].bytes;
    if (!takes(pattern.width, bytes)) {
      return fmt::format("`{}` is {}, the form takes {}", operand.name, words_of_register(bytes),
                         words(pattern.width));
    }
    if (operand.displacement != 0 && !is_address) {
      return fmt::format("`{}` is a register, a sum stands in brackets only", operand.name);
    }
    return {};
  }
  int bytes = 8;
  if (symbol) {
    const bool variable = symbol->kind == Symbol::Kind::kVariable;
    const ptx::Space space = variable ? symbol->variable->space : ptx::Space::kParameter;
    if (variable && is_of_module(space) && memory_.find(operand.name).empty()) {
      return fmt::format("`{}` is a variable of another module; modules are not linked", operand.name);
    }
    if (space == ptx::Space::kShared && pattern.width == Width::k32) bytes = 4;
  } else if (const std::optional<Special> special = special_register(operand.name)) {
    bytes = special_bytes(*special);
  } else if (operand.name.starts_with('%')) {
    return fmt::format("`{}` is neither a declared register nor a special register known here", operand.name);
  } else {
    return fmt::format("`{}` is not declared", operand.name);
  }
  if (pattern.written) return fmt::format("`{}` cannot be written", operand.name);
  if (!takes(pattern.width, bytes)) {
    return fmt::format("`{}` is {}, the form takes {}", operand.name, words_of_register(bytes),
                       words(pattern.width));
  }
  return {};
}

std::string OperandBinder::misfit_literal(const OperandPattern& pattern, const Operand& operand) const {
  const bool is_integer = operand.kind == Operand::Kind::kInteger;
  switch (pattern.width) {
    case Width::k16:
    case Width::k32: {
      const int bits = pattern.width == Width::k16 ? 16 : 32;
      if (is_integer && !fits_integer(operand.bits, bits)) {
        return fmt::format("the literal {} does not fit into {} bits", std::int64_t(operand.bits), bits);
      }
      return is_integer || bits == 32 ? std::string() : wrong_kind(pattern, operand);
    }
    case Width::k128:
      return wrong_kind(pattern, operand);
    case Width::kPredicate:
      return is_integer ? std::string() : wrong_kind(pattern, operand);
    default:
      return {};
  }
}

}  // namespace flashback::emulator
