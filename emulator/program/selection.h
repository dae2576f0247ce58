// What the `select` of a row sees of the instruction that matched it.
#pragma once

#include <string_view>
#include <vector>

#include "emulator/program/draft.h"
#include "emulator/program/instruction_set.h"
#include "emulator/program/operand_binder.h"

namespace flashback::emulator {

class Selection : public Match {
 public:
  Selection(std::string_view opcode, const std::vector<std::string_view>& choices, const Draft& draft,
            BoundOperands* operands)
      : opcode_(opcode), choices_(choices), draft_(draft), operands_(*operands) {}

  bool has(std::string_view piece) const override {
    for (std::size_t at = 0; (at = opcode_.find(piece, at)) != std::string_view::npos; ++at) {
      const std::size_t after = at + piece.size();
      if (after == opcode_.size() || opcode_[after] == '.' || opcode_[after] == ':') return true;
    }
    return false;
  }
  std::string_view choice(int n) const override {
    return std::size_t(n) < choices_.size() ? choices_[n] : std::string_view();
  }
  int bytes(char place) const override {
    const Step& step = operands_.step;
    const Register number = place == 'd'   ? step.d
                            : place == 'a' ? step.a
                            : place == 'b' ? step.b
                            : place == 'c' ? step.c
                                           : first_of_list();
    return number == kNone ? 0 : draft_.registers[number].bytes;
  }
  int list_size() const override { return int(operands_.list.size()); }
  std::optional<std::uint64_t> list_literal(int n) const override {
    const Register number = operands_.list[std::size_t(n)];
    if (number == kNone) return std::nullopt;
    const VirtualRegister& r = draft_.registers[number];
    if (!r.is_preset || r.kind != Preset::Kind::kBits) return std::nullopt;
    return r.value;
  }
  Step& step() override { return operands_.step; }

 private:
  Register first_of_list() const {
    for (Register number : operands_.list) {
      if (number != kNone) return number;
    }
    return kNone;
  }

  std::string_view opcode_;
  const std::vector<std::string_view>& choices_;
  const Draft& draft_;
  BoundOperands& operands_;
};

}  // namespace flashback::emulator
