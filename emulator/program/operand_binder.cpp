#include "emulator/program/operand_binder.h"

#include <bit>

#include "emulator/program/special.h"

namespace flashback::emulator {
namespace {

using Kind = OperandPattern::Kind;
using Width = OperandPattern::Width;
using ptx::Operand;

bool has_literal(const std::vector<OperandPattern>& patterns) {
  for (const OperandPattern& pattern : patterns) {
    if (pattern.kind == Kind::kLiteral) return true;
  }
  return false;
}

int bytes_of(Width width) {
  switch (width) {
    case Width::k16:
      return 2;
    case Width::k32:
      return 4;
    case Width::kPredicate:
      return 0;
    default:
      return 8;
  }
}

Width width_of(int bytes) {
  return bytes == 2 ? Width::k16 : bytes == 4 ? Width::k32 : bytes == 8 ? Width::k64 : Width::kAny;
}

}  // namespace

Register OperandBinder::new_register(int bytes) {
  draft_.registers.push_back({std::uint8_t(bytes)});
  return Register(draft_.registers.size()) - 1;
}

Register OperandBinder::preset(Preset::Kind kind, std::uint64_t value, int bytes, bool dynamic_shared) {
  auto [place, fresh] = presets_.try_emplace({kind, value, bytes, dynamic_shared}, kNone);
  if (fresh) {
    draft_.registers.push_back({std::uint8_t(bytes), true, kind, value, dynamic_shared});
    place->second = Register(draft_.registers.size()) - 1;
  }
  return place->second;
}

BoundOperands OperandBinder::bind(const Patterns& patterns, const Operands& operands) {
  BoundOperands bound;
  literal_owns_immediate_ = has_literal(patterns);
  immediate_taken_ = false;
  bind_all(patterns, operands, &bound);
  return bound;
}

void OperandBinder::bind_all(const Patterns& patterns, const Operands& operands, BoundOperands* bound) {
  Assignment assignment(patterns.size());
  Reason reason;
  assign(patterns, 0, operands, 0, &assignment, &reason);
  for (std::size_t i = 0; i < patterns.size(); ++i) bind_one(patterns[i], assignment[i], bound);
}

void OperandBinder::bind_one(const OperandPattern& pattern, const Operand* operand, BoundOperands* bound) {
  if (!operand) return bind_absent(pattern, bound);
  switch (pattern.kind) {
    case Kind::kRegister:
      return put(pattern, value(pattern, *operand, bound), bound);
    case Kind::kBraces: {
      OperandPattern of_part = pattern;  // a literal is as wide as the registers beside it
      if (pattern.width == Width::kAny) of_part.width = width_of(*list_bytes(*operand));
      for (const Operand& part : operand->parts) put(pattern, value(of_part, part, bound), bound);
      return;
    }
    case Kind::kPair: {
      const bool pair = operand->kind == Operand::Kind::kPair;
      bind_one(pattern.parts[0], pair ? &operand->parts[0] : operand, bound);
      return bind_one(pattern.parts[1], pair ? &operand->parts[1] : nullptr, bound);
    }
    case Kind::kBrackets: {
      bind_address(pattern.parts[0], operand->parts[0], bound);
      const Patterns patterns(pattern.parts.begin() + 1, pattern.parts.end());
      return bind_all(patterns, Operands(operand->parts.begin() + 1, operand->parts.end()), bound);
    }
    case Kind::kLiteral:
      bound->step.immediate = std::int64_t(operand->bits);
      return;
    case Kind::kLabel:
      bound->label = operand->name;
      return;
  }
}

void OperandBinder::bind_absent(const OperandPattern& pattern, BoundOperands* bound) {
  switch (pattern.kind) {
    case Kind::kRegister:
      return put(pattern, kNone, bound);
    case Kind::kBraces:
      for (int i = 0; i < pattern.count; ++i) put(pattern, kNone, bound);
      return;
    case Kind::kPair:
    case Kind::kBrackets:
      for (const OperandPattern& part : pattern.parts) bind_absent(part, bound);
      return;
    case Kind::kLiteral:
    case Kind::kLabel:
      return;
  }
}

void OperandBinder::put(const OperandPattern& pattern, Register register_number, BoundOperands* bound) {
  if (register_number != kNone) bound->accesses.push_back({register_number, pattern.read, pattern.written});
  switch (pattern.kind == Kind::kBraces ? 'l' : pattern.place) {
    case 'd':
      bound->step.d = register_number;
      return;
    case 'a':
      bound->step.a = register_number;
      return;
    case 'b':
      bound->step.b = register_number;
      return;
    case 'c':
      bound->step.c = register_number;
      return;
    default:
      bound->list.push_back(register_number);
  }
}

void OperandBinder::bind_address(const OperandPattern& pattern, const Operand& operand,
                                 BoundOperands* bound) {
  std::optional<Register> base;
  if (operand.kind != Operand::Kind::kName) {
    base = literal(pattern, operand);
  } else {
    base = named_preset(pattern, operand);  // the displacement is part of its value
  }
  const bool owns_immediate = !literal_owns_immediate_ && !immediate_taken_;
  immediate_taken_ = true;
  if (!base) {
    base = names_.find(operand.name)->register_number;
    if (operand.displacement != 0 && owns_immediate) {
      bound->step.immediate = operand.displacement;
    } else if (operand.displacement != 0) {
      const Register sum = new_register(draft_.registers[*base].bytes);
      bound->preparations.push_back({Preparation::Kind::kAdd, *base, operand.displacement, sum});
      base = sum;
    }
  }
  put(pattern, *base, bound);
}

Register OperandBinder::value(const OperandPattern& pattern, const Operand& operand, BoundOperands* bound) {
  if (operand.kind == Operand::Kind::kSink) return kNone;
  if (operand.kind != Operand::Kind::kName) return literal(pattern, operand);
  if (std::optional<Register> found = named_preset(pattern, operand)) return *found;
  const Register plain = names_.find(operand.name)->register_number;
  if (!operand.negated) return plain;
  const Register negated = new_register(0);
  bound->preparations.push_back({Preparation::Kind::kNegate, plain, 0, negated});
  return negated;
}

std::optional<Register> OperandBinder::named_preset(const OperandPattern& pattern, const Operand& operand) {
  const int bytes = bytes_of(pattern.width);
  if (operand.name == "WARP_SZ") return preset(Preset::Kind::kBits, 32, bytes);
  const std::optional<Symbol> symbol = names_.find(operand.name);
  if (!symbol) {
    const Special special = *special_register(operand.name);
    return preset(Preset::Kind::kSpecial, std::uint64_t(special), special_bytes(special));
  }
  const std::uint64_t displacement = std::uint64_t(operand.displacement);
  if (symbol->kind == Symbol::Kind::kParameter) {
    return preset(Preset::Kind::kParameter, symbol->parameter->offset + displacement, 8);
  }
  if (symbol->kind == Symbol::Kind::kVariable) {
    const ptx::Variable& variable = *symbol->variable;
    if (is_of_module(variable.space)) {
      return preset(Preset::Kind::kAddress, memory_.address(variable.name) + displacement, 8);
    }
    if (variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParameter) {
      return preset(Preset::Kind::kLocal, layout_.offset(variable) + displacement, 8);
    }
    const bool dynamic = variable.bytes == 0;
    return preset(Preset::Kind::kShared, (dynamic ? 0 : layout_.offset(variable)) + displacement, bytes,
                  dynamic);
  }
  return std::nullopt;
}

Register OperandBinder::literal(const OperandPattern& pattern, const Operand& operand) {
  int bytes = bytes_of(pattern.width);
  std::uint64_t bits = operand.bits;
  if (bytes == 0) {
    bits = bits != 0 ? kAllLanes : 0;
  } else if (operand.kind == Operand::Kind::kFloat && pattern.width == Width::kAny) {
    bytes = 4;
  } else if (operand.kind == Operand::Kind::kFloat && bytes == 8) {
    bits = std::bit_cast<std::uint64_t>(double(std::bit_cast<float>(std::uint32_t(bits))));
  } else if (operand.kind == Operand::Kind::kDouble && bytes == 4) {
    bits = std::bit_cast<std::uint32_t>(float(std::bit_cast<double>(bits)));
  } else if (bytes < 8) {
    bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  }
  return preset(Preset::Kind::kBits, bits, bytes);
}

}  // namespace flashback::emulator
