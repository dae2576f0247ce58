// The operands of an instruction against the patterns of a row: do they fit, and into which places do they
// go?
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/program/draft.h"
#include "emulator/program/memory_layout.h"
#include "emulator/program/module_memory.h"
#include "emulator/program/names.h"
#include "emulator/program/operand_pattern.h"
#include "emulator/ptx/module.h"

namespace flashback::emulator {

// What an operand turned out to need beyond its place in the step.
struct Preparation {
  enum class Kind { kNegate, kAdd };
  Kind kind;
  Register source;
  std::int64_t addend;  // of kAdd
  Register result;
};

struct BoundOperands {
  Step step;  // places and immediate; the rest untouched
  std::vector<Register> list;
  std::vector<Access> accesses;
  std::string_view label;                 // of a branch
  std::vector<Preparation> preparations;  // to be emitted before
};

class OperandBinder {
 public:
  using Operands = std::vector<ptx::Operand>;
  using Patterns = std::vector<OperandPattern>;

  OperandBinder(Draft* draft, const Names* names, MemoryLayout* layout, const ModuleMemory* memory)
      : draft_(*draft), names_(*names), layout_(*layout), memory_(*memory) {}

  // Empty when the operands fit, else why not.
  std::string misfit(const Patterns& patterns, const Operands& operands) const;
  // Of operands that fit.
  BoundOperands bind(const Patterns& patterns, const Operands& operands);

  Register preset(Preset::Kind kind, std::uint64_t value, int bytes, bool dynamic_shared = false);
  Register new_register(int bytes);

 private:
  // Which operand each pattern takes; null where it was left out.
  using Assignment = std::vector<const ptx::Operand*>;
  struct Reason {
    std::size_t depth = 0;
    std::string text;
  };
  bool assign(const Patterns& patterns, std::size_t pattern, const Operands& operands, std::size_t operand,
              Assignment* assignment, Reason* reason) const;

  std::string misfit(const OperandPattern& pattern, const ptx::Operand& operand) const;
  std::string misfit_value(const OperandPattern& pattern, const ptx::Operand& operand, bool is_address) const;
  std::string misfit_name(const OperandPattern& pattern, const ptx::Operand& operand, bool is_address) const;
  std::string misfit_literal(const OperandPattern& pattern, const ptx::Operand& operand) const;

  // The width in bytes that all registers of a list have; 0 where it has none, nothing where they differ.
  std::optional<int> list_bytes(const ptx::Operand& list) const;

  void bind_all(const Patterns& patterns, const Operands& operands, BoundOperands* bound);
  void bind_one(const OperandPattern& pattern, const ptx::Operand* operand, BoundOperands* bound);
  void bind_absent(const OperandPattern& pattern, BoundOperands* bound);
  void bind_address(const OperandPattern& pattern, const ptx::Operand& operand, BoundOperands* bound);
  void put(const OperandPattern& pattern, Register register_number, BoundOperands* bound);
  Register value(const OperandPattern& pattern, const ptx::Operand& operand, BoundOperands* bound);
  Register literal(const OperandPattern& pattern, const ptx::Operand& operand);
  // The address of a variable or parameter, or a special register; nothing when the name is a register.
  std::optional<Register> named_preset(const OperandPattern& pattern, const ptx::Operand& operand);

  Draft& draft_;
  const Names& names_;
  MemoryLayout& layout_;
  const ModuleMemory& memory_;
  std::map<std::tuple<Preset::Kind, std::uint64_t, int, bool>, Register> presets_;
  bool literal_owns_immediate_ = false;  // of the row being bound
  bool immediate_taken_ = false;
};

}  // namespace flashback::emulator
