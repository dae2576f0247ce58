// The statements of an entry, one after the other, into a draft; then analysis, allocation and the finished
// program.
#include "emulator/program/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "emulator/program/allocation.h"
#include "emulator/program/emitter.h"
#include "emulator/program/flow.h"
#include "emulator/program/pending_registers.h"
#include "emulator/ptx/grammar.h"

namespace flashback::emulator {
namespace {

// A call as its operands say it: `call (results), name, (arguments)`.
struct Call {
  explicit Call(const ptx::Instruction& instruction) {
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.kind == ptx::Operand::Kind::kName && name.empty()) {
        name = operand.name;
      } else if (operand.kind == ptx::Operand::Kind::kParens) {
        (name.empty() ? results : arguments) = operand.parts;
      } else {
        has_prototype = true;  // or a list of possible functions
      }
    }
  }
  std::string_view name;
  std::vector<ptx::Operand> results, arguments;
  bool has_prototype = false;
};

// Where a call goes on; no name of PTX has blanks.
constexpr std::string_view kEndOfCall = "end of the call";

ptx::Operand operand_of(std::string_view name) {
  ptx::Operand operand;
  operand.kind = ptx::Operand::Kind::kName;
  operand.name = name;
  return operand;
}

ptx::Operand bracketed(std::string_view name) {
  ptx::Operand operand;
  operand.kind = ptx::Operand::Kind::kBrackets;
  operand.parts.push_back(operand_of(name));
  return operand;
}

class Decoder {
 public:
  Decoder(const ptx::Module& module, const ModuleMemory& memory, const ptx::Entry& entry,
          std::span<const std::span<const Row>> families)
      : module_(module), entry_(entry), emitter_(families, memory) {}

  std::unique_ptr<Program> run() {
    for (const ptx::Variable& variable : module_.variables) declare(variable.name, variable);
    names_.enter();  // an entry may redeclare the module's names
    for (const ptx::Parameter& parameter : entry_.parameters) {
      Symbol symbol;
      symbol.kind = Symbol::Kind::kParameter;
      symbol.parameter = &parameter;
      names_.declare(parameter.name, symbol);
    }
    take_entry();
    end_with_return();
    resolve_labels();
    return finish();
  }

 private:
  static constexpr Names::Scope kModule = 0;

  bool declare(std::string_view name, const ptx::Variable& variable) {
    Symbol symbol;
    symbol.kind = Symbol::Kind::kVariable;
    symbol.variable = &variable;
    return names_.declare(name, symbol);
  }

  void take_entry() {
    try {
      take(entry_.body);
    } catch (const DecodeError& error) {
      throw DecodeError(error.what() + source_text());
    }
  }

  // " (file.cu:45)", the line of CUDA source that is being decoded; empty when it is not known.
  std::string source_text() const {
    const Program::SourceLine source = emitter_.source;
    if (source.line == 0 || source.file >= module_.files.size()) return "";
    const std::string_view file = module_.files[source.file];
    return fmt::format(" ({}:{})", file.substr(file.find_last_of('/') + 1), source.line);
  }

  void take(const std::vector<ptx::Statement>& body) {
    for (const ptx::Statement& statement : body) std::visit([this](const auto& s) { take(s); }, statement);
  }

  void take(const ptx::ScopeBegin&) { names_.enter(); }
  void take(const ptx::ScopeEnd&) { names_.leave(); }
  // An inlined function's line follows its call's, outermost first.
  void take(const ptx::Location& location) {
    while (!inlined_.empty() &&
           (inlined_.back().file != location.caller_file || inlined_.back().line != location.caller_line)) {
      inlined_.pop_back();
    }
    emitter_.source = {location.file, location.line, caller(location)};
    inlined_.push_back(emitter_.source);
  }

  std::uint32_t caller(const ptx::Location& location) {
    if (location.caller_line == 0) return 0;
    const Program::SourceLine call =
        inlined_.empty() ? Program::SourceLine{location.caller_file, location.caller_line} : inlined_.back();
    std::vector<Program::SourceLine>& callers = program_->callers;
    const auto found = std::size_t(std::find(callers.begin(), callers.end(), call) - callers.begin());
    if (found == callers.size()) callers.push_back(call);
    return 1 + std::uint32_t(found);
  }

  void take(const ptx::Mark& mark) {
    program_->marks.push_back({std::uint32_t(draft_.steps.size()), std::string(mark.name)});
  }

  void take(const ptx::Label& label) {
    if (!names_.declare_label(label.name, std::uint32_t(draft_.steps.size()))) {
      fail_at_line(label.at.line, fmt::format("the label `{}` stands twice in one scope", label.name));
    }
  }

  void take(const ptx::Registers& declared) {
    const std::uint32_t bytes = *ptx::type_bytes(declared.type);
    const int register_bytes = bytes == 1 ? 2 : int(bytes);
    bool fresh;
    if (declared.count == 0) {
      Symbol symbol;
      symbol.register_number = emitter_.new_register(register_bytes);
      fresh = names_.declare(declared.prefix, symbol);
    } else {
      const Register first = Register(draft_.registers.size());
      draft_.registers.resize(draft_.registers.size() + declared.count,
                              VirtualRegister{std::uint8_t(register_bytes)});
      fresh = names_.declare_range(declared.prefix, first, declared.count);
    }
    if (!fresh)
      fail_at_line(declared.at.line, fmt::format("`{}` is declared twice in one scope", declared.prefix));
  }

  void take(const ptx::Variable& variable) {
    if (ptx::is_of_module(variable.space)) {
      fail_at_line(variable.at.line,
                   fmt::format("`{}` is declared inside an entry; variables in global and constant "
                               "memory stand at the level of the module",
                               variable.name));
    }
    if (!variable.initial.empty()) {
      fail_at_line(variable.at.line,
                   fmt::format("`{}` has an initialiser, which shared and local variables cannot have",
                               variable.name));
    }
    if (!declare(variable.name, variable)) {
      fail_at_line(variable.at.line, fmt::format("`{}` is declared twice in one scope", variable.name));
    }
    layout_.offset(variable);
  }

  void take(const ptx::Instruction& instruction) {
    Emitter::Guard guard;
    if (!instruction.guard.empty()) {
      const std::optional<Symbol> symbol = names_.find(instruction.guard);
      if (!symbol || symbol->kind != Symbol::Kind::kRegister ||
          draft_.registers[symbol->register_number].bytes != 0) {
        fail_at_line(instruction.at.line, fmt::format("the guard `{}` of `{}` is no declared predicate",
                                                      instruction.guard, instruction.opcode));
      }
      guard = {symbol->register_number, instruction.guard_negated};
    }
    const std::string_view opcode = instruction.opcode;
    if (first_piece(opcode) == "call") {
      take_call(instruction, guard);
    } else if (first_piece(opcode) == "ret" && !calls_.empty()) {
      branch_to_end(instruction.at.line, guard);
    } else {
      emitter_.emit(opcode, instruction.operands, instruction.at.line, guard);
    }
  }

  // ---- calls: the function's body stands where it is called, with registers and labels of its own

  void branch_to_end(std::uint32_t line, Emitter::Guard guard) {
    emitter_.emit("bra", {operand_of(kEndOfCall)}, line, guard);
  }
  void end_of_call() { names_.declare_label(kEndOfCall, std::uint32_t(draft_.steps.size())); }

  void take_call(const ptx::Instruction& instruction, Emitter::Guard guard) {
    const std::uint32_t line = instruction.at.line;
    const Call call(instruction);
    const ptx::Function& function = callee(call, line);
    names_.enter();
    if (guard.predicate != kNone) branch_to_end(line, {guard.predicate, !guard.negated});
    if (function.is_defined) {
      insert(function, call, line);
    } else {
      use_provided(function, call, line);
    }
    end_of_call();
    names_.leave();
  }

  const ptx::Function& callee(const Call& call, std::uint32_t line) {
    if (call.has_prototype) {
      fail_at_line(line, fmt::format("the call through `{}` names no function; functions are called by name",
                                     call.name));
    }
    const ptx::Function* found = nullptr;  // a definition may stand behind a declaration
    for (const ptx::Function& function : module_.functions) {
      if (function.name == call.name && (found == nullptr || function.is_defined)) found = &function;
    }
    if (found == nullptr) fail_at_line(line, fmt::format("the function `{}` is not declared", call.name));
    for (const ptx::Function* caller : calls_) {
      if (caller == found)
        fail_at_line(line,
                     fmt::format("the function `{}` calls itself; recursion is not executed", call.name));
    }
    if (call.results.size() != found->results.size() || call.arguments.size() != found->parameters.size()) {
      fail_at_line(line,
                   fmt::format("the call of `{}` has {} results and {} arguments; the function has {} and {}",
                               call.name, call.results.size(), call.arguments.size(), found->results.size(),
                               found->parameters.size()));
    }
    return *found;
  }

  // The variable that the caller has declared for a parameter or a result.
  const ptx::Variable& actual(const ptx::Operand& operand, const ptx::Parameter& formal, std::uint32_t line) {
    const std::optional<Symbol> symbol = names_.find(operand.name);
    if (!symbol || symbol->kind != Symbol::Kind::kVariable ||
        symbol->variable->space != ptx::Space::kParameter || symbol->variable->bytes != formal.bytes) {
      fail_at_line(line, fmt::format("`{}` is given for `{}`, which takes a .param variable of {} bytes",
                                     operand.name, formal.name, formal.bytes));
    }
    return *symbol->variable;
  }

  void insert(const ptx::Function& function, const Call& call, std::uint32_t line) {
    const Names::Scope caller = names_.current();
    const Program::SourceLine source = emitter_.source;
    std::vector<std::pair<std::string_view, const ptx::Variable*>> bound;
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      bound.emplace_back(function.results[i].name, &actual(call.results[i], function.results[i], line));
    }
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      bound.emplace_back(function.parameters[i].name,
                         &actual(call.arguments[i], function.parameters[i], line));
    }
    names_.enter_within(kModule);
    for (const auto& [name, variable] : bound) declare(name, *variable);
    calls_.push_back(&function);
    take(function.body);
    calls_.pop_back();
    end_of_call();
    names_.go_to(caller);
    emitter_.source = source;
  }

  // A function of the machine: a row `call.name` with its result and arguments in registers.
  void use_provided(const ptx::Function& function, const Call& call, std::uint32_t line) {
    static constexpr std::string_view kValues[] = {"result",     "argument 1", "argument 2", "argument 3",
                                                   "argument 4", "argument 5", "argument 6"};
    const std::string& opcode = *provided_.insert(fmt::format("call.{}", function.name)).first;
    if (!emitter_.knows(opcode) || call.arguments.size() >= std::size(kValues)) {
      fail_at_line(
          line,
          fmt::format("the function `{}` is called, but its module does not define it and the emulator does "
                      "not provide it",
                      function.name));
    }
    std::vector<ptx::Operand> operands;
    const auto add_register = [&](std::string_view name, std::uint64_t bytes) {
      Symbol symbol;
      symbol.register_number = emitter_.new_register(int(bytes));
      names_.declare(name, symbol);
      operands.push_back(operand_of(name));
    };
    const auto move = [](const char* four, const char* eight, std::uint64_t bytes) {
      return bytes == 8 ? eight : four;
    };
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      add_register(kValues[0], actual(call.results[i], function.results[i], line).bytes);
    }
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      const ptx::Variable& argument = actual(call.arguments[i], function.parameters[i], line);
      add_register(kValues[i + 1], argument.bytes);
      emitter_.emit(move("ld.param.b32", "ld.param.b64", argument.bytes),
                    {operand_of(kValues[i + 1]), bracketed(argument.name)}, line, {});
    }
    emitter_.emit(opcode, operands, line, {});
    for (const ptx::Operand& result : call.results) {
      const std::uint64_t bytes = names_.find(result.name)->variable->bytes;
      emitter_.emit(move("st.param.b32", "st.param.b64", bytes),
                    {bracketed(result.name), operand_of(kValues[0])}, line, {});
    }
  }

  // Control that runs past the last statement leaves the entry.
  void end_with_return() {
    const std::uint32_t line = draft_.steps.empty() ? entry_.at.line : draft_.steps.back().step.line;
    emitter_.emit("ret", {}, line, {});
  }

  void resolve_labels() {
    for (const Emitter::Branch& branch : emitter_.branches) {
      Step& step = draft_.steps[branch.step].step;
      const std::optional<std::uint32_t> target = names_.find_label(branch.label, branch.scope);
      if (!target) {
        fail_at_line(step.line, fmt::format("`{}` branches to `{}`, a label that no enclosing scope has",
                                            emitter_.forms[step.form], branch.label));
      }
      step.target = *target;
    }
  }

  std::unique_ptr<Program> finish() {
    const Flow flow(draft_);
    const std::vector<PendingSpan> spans = mark_pending_registers(&draft_, flow);
    program_->name = entry_.name;
    program_->forms = std::move(emitter_.forms);
    program_->communicates = emitter_.communicates;
    program_->cancels_launches = emitter_.cancels_launches;
    program_->parameter_bytes = std::uint32_t(entry_.parameter_bytes);
    for (const ptx::Parameter& parameter : entry_.parameters) {
      program_->parameters.push_back({std::uint32_t(parameter.offset), std::uint32_t(parameter.bytes)});
    }
    program_->static_shared_bytes = std::uint32_t(layout_.shared_bytes());
    program_->local_bytes = std::uint32_t((layout_.local_bytes() + 15) / 16 * 16);
    program_->max_threads =
        threads(entry_.required_threads[0] ? entry_.required_threads : entry_.max_threads);
    program_->registers_at_launch = registers_at_launch();
    std::copy_n(entry_.cluster, 3, program_->required_cluster);
    program_->max_cluster = entry_.max_cluster;
    program_->explicit_cluster = entry_.explicit_cluster;
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
  Emitter emitter_;
  Draft& draft_ = emitter_.draft;
  Names& names_ = emitter_.names;
  MemoryLayout& layout_ = emitter_.layout;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  std::vector<const ptx::Function*> calls_;   // that the statements being taken belong to
  std::set<std::string> provided_;            // opcodes of functions of the machine
  std::vector<Program::SourceLine> inlined_;  // the calls that the source line lies in, and itself
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
