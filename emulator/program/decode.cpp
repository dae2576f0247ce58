// The statements of an entry, one after the other, into a draft; then analysis, allocation and the finished
// program.
#include "emulator/program/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "emulator/program/allocation.h"
#include "emulator/program/draft.h"
#include "emulator/program/flow.h"
#include "emulator/program/instruction_table.h"
#include "emulator/program/memory_layout.h"
#include "emulator/program/names.h"
#include "emulator/program/operand_binder.h"
#include "emulator/program/pending_registers.h"
#include "emulator/ptx/grammar.h"

namespace flashback::emulator {
namespace {

// Thrown inside the decoder only; decode() turns it into DecodeResult::error.
class DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(std::uint32_t line, const std::string& sentence) {
  throw DecodeError(fmt::format("PTX line {}: {}", line, sentence));
}

// What a row's `select` sees.
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

// An access through which a CTA may see what another one that still runs has written.
bool observes_other_ctas(std::string_view opcode) {
  const std::string_view first = first_piece(opcode);
  if (first == "atom") return opcode.find(".shared") == std::string_view::npos;
  if (first != "ld") return false;
  const bool strong = opcode.find(".acquire") != std::string_view::npos ||
                      opcode.find(".relaxed") != std::string_view::npos ||
                      opcode.find(".volatile") != std::string_view::npos ||
                      opcode.find(".mmio") != std::string_view::npos;
  return strong && opcode.find(".shared") == std::string_view::npos;
}

class Decoder {
 public:
  Decoder(const ptx::Module& module, const ModuleMemory& memory, const ptx::Entry& entry,
          std::span<const std::span<const Row>> families)
      : module_(module), entry_(entry), table_(families), binder_(&draft_, &names_, &layout_, &memory) {}

  std::unique_ptr<Program> run() {
    declare_module();
    names_.enter();  // an entry may redeclare the module's names
    for (const ptx::Statement& statement : entry_.body) {
      std::visit([this](const auto& s) { take(s); }, statement);
      ++statement_;
    }
    end_with_return();
    resolve_labels();
    return finish();
  }

 private:
  struct Branch {
    std::size_t step;
    std::string_view label;
    Names::Scope scope;
  };

  void declare_module() {
    for (const ptx::Variable& variable : module_.variables) {
      Symbol symbol;
      symbol.kind = Symbol::Kind::kVariable;
      symbol.variable = &variable;
      names_.declare(variable.name, symbol);
    }
    for (const ptx::Parameter& parameter : entry_.parameters) {
      Symbol symbol;
      symbol.kind = Symbol::Kind::kParameter;
      symbol.parameter = &parameter;
      names_.declare(parameter.name, symbol);
    }
  }

  void take(const ptx::ScopeBegin&) { names_.enter(); }
  void take(const ptx::ScopeEnd&) { names_.leave(); }
  void take(const ptx::Location& location) { source_ = {location.file, location.line}; }

  void take(const ptx::Label& label) {
    if (!names_.declare_label(label.name, std::uint32_t(draft_.steps.size()))) {
      fail(label.at.line, fmt::format("the label `{}` stands twice in one scope", label.name));
    }
  }

  void take(const ptx::Registers& declared) {
    const std::uint32_t bytes = *ptx::type_bytes(declared.type);
    if (bytes > 8) {
      fail(declared.at.line,
           fmt::format("registers of type .{} are not executed; the widest have 64 bits", declared.type));
    }
    const int register_bytes = bytes == 1 ? 2 : int(bytes);
    bool fresh;
    if (declared.count == 0) {
      Symbol symbol;
      symbol.register_number = binder_.new_register(register_bytes);
      fresh = names_.declare(declared.prefix, symbol);
    } else {
      const Register first = Register(draft_.registers.size());
      draft_.registers.resize(draft_.registers.size() + declared.count,
                              VirtualRegister{std::uint8_t(register_bytes)});
      fresh = names_.declare_range(declared.prefix, first, declared.count);
    }
    if (!fresh) fail(declared.at.line, fmt::format("`{}` is declared twice in one scope", declared.prefix));
  }

  void take(const ptx::Variable& variable) {
    if (variable.space == ptx::Space::kParameter) fail_at_call(variable);
    if (ptx::is_of_module(variable.space)) {
      fail(variable.at.line, fmt::format("`{}` is declared inside an entry; variables in global and constant "
                                         "memory stand at the level of the module",
                                         variable.name));
    }
    if (!variable.initial.empty()) {
      fail(variable.at.line,
           fmt::format("`{}` has an initialiser, which shared and local variables cannot have",
                       variable.name));
    }
    Symbol symbol;
    symbol.kind = Symbol::Kind::kVariable;
    symbol.variable = &variable;
    if (!names_.declare(variable.name, symbol)) {
      fail(variable.at.line, fmt::format("`{}` is declared twice in one scope", variable.name));
    }
    layout_.offset(variable);
  }

  // A .param in a body belongs to a call.
  [[noreturn]] void fail_at_call(const ptx::Variable& variable) {
    for (std::size_t i = statement_; i < entry_.body.size(); ++i) {
      const auto* instruction = std::get_if<ptx::Instruction>(&entry_.body[i]);
      if (instruction && first_piece(instruction->opcode) == "call") fail_call(*instruction);
    }
    fail(variable.at.line, fmt::format("the parameter `{}` belongs to no call", variable.name));
  }
  [[noreturn]] void fail_call(const ptx::Instruction& call) {
    std::string_view name = "a function";
    for (const ptx::Operand& operand : call.operands) {
      if (operand.kind == ptx::Operand::Kind::kName) {
        name = operand.name;
        break;
      }
    }
    fail(call.at.line, fmt::format("`{}` calls `{}`; device functions are not called, they must be inlined",
                                   call.opcode, name));
  }

  void take(const ptx::Instruction& instruction) {
    if (first_piece(instruction.opcode) == "call") fail_call(instruction);
    Register guard = kNone;
    if (!instruction.guard.empty()) {
      const std::optional<Symbol> symbol = names_.find(instruction.guard);
      if (!symbol || symbol->kind != Symbol::Kind::kRegister ||
          draft_.registers[symbol->register_number].bytes != 0) {
        fail(instruction.at.line, fmt::format("the guard `{}` of `{}` is no declared predicate",
                                              instruction.guard, instruction.opcode));
      }
      guard = symbol->register_number;
    }
    emit(instruction.opcode, instruction.operands, instruction.at.line, guard, instruction.guard_negated);
  }

  void emit(std::string_view opcode, const std::vector<ptx::Operand>& operands, std::uint32_t line,
            Register guard, bool guard_negated) {
    const std::vector<InstructionTable::Candidate>& candidates = table_.find(opcode);
    if (candidates.empty()) {
      const std::string nearest = table_.nearest(opcode);
      fail(line, fmt::format("the opcode `{}` is not executed{}{}", opcode,
                             nearest.empty() ? "" : "; the nearest forms are  ", nearest));
    }
    std::string why;
    for (const InstructionTable::Candidate& candidate : candidates) {
      const std::string misfit = binder_.misfit(candidate.entry->operands, operands);
      if (misfit.empty()) {
        BoundOperands bound = binder_.bind(candidate.entry->operands, operands);
        for (const Preparation& preparation : bound.preparations) prepare(preparation, line);
        const Body body = select(opcode, candidate, &bound);
        if (!body) {
          fail(line, fmt::format(
                         "the opcode `{}` has the form `{}`, but this combination of modifiers and operands "
                         "does not exist",
                         opcode, candidate.entry->form.text()));
        }
        append(opcode, bound, body, line, guard, guard_negated);
        return;
      }
      why += fmt::format("{}{} (operands of the form: {})", why.empty() ? "" : "; or ", misfit,
                         candidate.entry->row->operands);
    }
    fail(line, fmt::format("the operands of `{}` do not fit: {}", opcode, why));
  }

  Body select(std::string_view opcode, const InstructionTable::Candidate& candidate, BoundOperands* bound) {
    Selection selection(opcode, candidate.choices, draft_, bound);
    return candidate.entry->row->select(selection);
  }

  // The steps that compute an operand: a negated predicate, an address with a displacement that the step
  // cannot hold.
  void prepare(const Preparation& preparation, std::uint32_t line) {
    const int bytes = draft_.registers[preparation.result].bytes;
    const bool negate = preparation.kind == Preparation::Kind::kNegate;
    const std::string_view opcode = negate ? "not.pred" : bytes == 4 ? "add.s32" : "add.s64";
    const std::vector<InstructionTable::Candidate>& candidates = table_.find(opcode);
    if (candidates.empty()) fail(line, fmt::format("the table has no `{}`, which an operand needs", opcode));
    BoundOperands bound;
    bound.step.d = preparation.result;
    bound.step.a = preparation.source;
    bound.accesses = {{preparation.result, false, true}, {preparation.source, true, false}};
    if (!negate) {
      bound.step.b = binder_.preset(Preset::Kind::kBits, addend_bits(preparation.addend, bytes), bytes);
      bound.accesses.push_back({bound.step.b, true, false});
    }
    append(opcode, bound, select(opcode, candidates[0], &bound), line, kNone, false);
  }
  static std::uint64_t addend_bits(std::int64_t addend, int bytes) {
    return bytes == 4 ? std::uint32_t(addend) : std::uint64_t(addend);
  }

  void append(std::string_view opcode, const BoundOperands& bound, Body body, std::uint32_t line,
              Register guard, bool guard_negated) {
    DraftStep draft;
    draft.step = bound.step;
    draft.step.body = body;
    draft.step.line = line;
    draft.step.form = form_number(opcode);
    draft.step.guard = guard;
    draft.step.guard_negated = guard_negated;
    draft.step.list_size = std::uint16_t(bound.list.size());
    draft.step.writes_list = std::any_of(bound.accesses.begin(), bound.accesses.end(), [&](const Access& a) {
      return a.written &&
             std::find(bound.list.begin(), bound.list.end(), a.register_number) != bound.list.end();
    });
    draft.source = source_;
    draft.list_begin = std::uint32_t(draft_.lists.size());
    draft_.lists.insert(draft_.lists.end(), bound.list.begin(), bound.list.end());
    draft.access_begin = std::uint32_t(draft_.accesses.size());
    draft_.accesses.insert(draft_.accesses.end(), bound.accesses.begin(), bound.accesses.end());
    if (guard != kNone) draft_.accesses.push_back({guard, true, false});
    draft.access_end = std::uint32_t(draft_.accesses.size());
    draft.branches = !bound.label.empty();
    draft.ends = opcode == "ret" || opcode == "ret.uni" || opcode == "exit" || opcode == "trap";
    if (opcode.starts_with("tcgen05.ld.")) draft.asynchronous = Asynchronous::kTensorLoad;
    if (opcode.starts_with("wgmma.mma_async.")) draft.asynchronous = Asynchronous::kProduct;
    if (opcode.starts_with("tcgen05.wait::ld.")) draft.waits_for_all = Asynchronous::kTensorLoad;
    if (opcode.starts_with("wgmma.wait_group.") && bound.step.immediate == 0) {
      draft.waits_for_all = Asynchronous::kProduct;
    }
    if (draft.branches) branches_.push_back({draft_.steps.size(), bound.label, names_.current()});
    program_->communicates |= observes_other_ctas(opcode);
    draft_.steps.push_back(draft);
  }

  std::uint16_t form_number(std::string_view opcode) {
    auto [place, fresh] = form_numbers_.try_emplace(opcode, std::uint16_t(program_->forms.size()));
    if (fresh) program_->forms.emplace_back(opcode);
    return place->second;
  }

  // Control that runs past the last statement leaves the entry.
  void end_with_return() {
    const std::uint32_t line = draft_.steps.empty() ? entry_.at.line : draft_.steps.back().step.line;
    emit("ret", {}, line, kNone, false);
  }

  void resolve_labels() {
    for (const Branch& branch : branches_) {
      Step& step = draft_.steps[branch.step].step;
      const std::optional<std::uint32_t> target = names_.find_label(branch.label, branch.scope);
      if (!target) {
        fail(step.line, fmt::format("`{}` branches to `{}`, a label that no enclosing scope has",
                                    program_->forms[step.form], branch.label));
      }
      step.target = *target;
    }
  }

  std::unique_ptr<Program> finish() {
    const Flow flow(draft_);
    const std::vector<PendingSpan> spans = mark_pending_registers(&draft_, flow);
    program_->name = entry_.name;
    program_->parameter_bytes = std::uint32_t(entry_.parameter_bytes);
    for (const ptx::Parameter& parameter : entry_.parameters) {
      program_->parameters.push_back({std::uint32_t(parameter.offset), std::uint32_t(parameter.bytes)});
    }
    program_->static_shared_bytes = std::uint32_t(layout_.shared_bytes());
    program_->local_bytes = std::uint32_t((layout_.local_bytes() + 15) / 16 * 16);
    program_->max_threads =
        threads(entry_.required_threads[0] ? entry_.required_threads : entry_.max_threads);
    program_->registers_at_launch = registers_at_launch();
    program_->files.assign(module_.files.begin(), module_.files.end());
    if (program_->files.empty()) program_->files.emplace_back();
    allocate(draft_, flow, spans, program_.get());
    return std::move(program_);
  }

  static std::uint32_t threads(const std::uint32_t (&extents)[3]) {
    return extents[0] * extents[1] * extents[2];
  }

  std::uint32_t registers_at_launch() const {
    if (entry_.max_registers != 0) return entry_.max_registers / 8 * 8;
    if (program_->max_threads == 0) return 0;
    const std::uint32_t ctas = std::max(entry_.min_ctas_per_sm, 1u);
    const std::uint32_t warps = (program_->max_threads + 31) / 32;
    return std::min(65536 / (ctas * warps * 32), 255u) / 8 * 8;
  }

  const ptx::Module& module_;
  const ptx::Entry& entry_;
  InstructionTable table_;
  Draft draft_;
  Names names_;
  MemoryLayout layout_;
  OperandBinder binder_;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  std::unordered_map<std::string_view, std::uint16_t> form_numbers_;
  std::vector<Branch> branches_;
  Program::SourceLine source_;
  std::size_t statement_ = 0;
};

}  // namespace

DecodeResult decode(const ptx::Module& module, const ModuleMemory& memory, std::string_view name,
                    std::span<const std::span<const Row>> families) {
  std::string names;
  for (const ptx::Entry& entry : module.entries) {
    if (entry.name == name) {
      try {
        return {Decoder(module, memory, entry, families).run(), {}};
      } catch (const DecodeError& error) {
        return {nullptr, error.what()};
      } catch (const std::invalid_argument& malformed_row) {
        return {nullptr, malformed_row.what()};
      }
    }
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", entry.name);
  }
  return {nullptr, fmt::format("the PTX has no entry `{}`; it has {}", name, names.empty() ? "none" : names)};
}

}  // namespace flashback::emulator
