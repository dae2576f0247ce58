#include "emulator/program/emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/program/selection.h"

namespace flashback::emulator {
namespace {

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

std::uint64_t addend_bits(std::int64_t addend, int bytes) {
  return bytes == 4 ? std::uint32_t(addend) : std::uint64_t(addend);
}

}  // namespace

void fail_at_line(std::uint32_t line, const std::string& sentence) {
  throw DecodeError(fmt::format("PTX line {}: {}", line, sentence));
}

void Emitter::emit(std::string_view opcode, const std::vector<ptx::Operand>& operands, std::uint32_t line,
                   Guard guard) {
  const std::vector<InstructionTable::Candidate>& candidates = table_.find(opcode);
  if (candidates.empty()) {
    const std::string nearest = table_.nearest(opcode);
    fail_at_line(line, fmt::format("the opcode `{}` is not executed{}{}", opcode,
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
        fail_at_line(
            line,
            fmt::format("the opcode `{}` has the form `{}`, but this combination of modifiers and operands "
                        "does not exist",
                        opcode, candidate.entry->form.text()));
      }
      append(opcode, bound, body, line, guard);
      return;
    }
    why += fmt::format("{}{} (operands of the form: {})", why.empty() ? "" : "; or ", misfit,
                       candidate.entry->row->operands);
  }
  fail_at_line(line, fmt::format("the operands of `{}` do not fit: {}", opcode, why));
}

Body Emitter::select(std::string_view opcode, const InstructionTable::Candidate& candidate,
                     BoundOperands* bound) {
  Selection selection(opcode, candidate.choices, draft, bound);
  return candidate.entry->row->select(selection);
}

// The steps that compute an operand: a negated predicate, an address with a displacement that the step
// cannot hold.
void Emitter::prepare(const Preparation& preparation, std::uint32_t line) {
  const int bytes = draft.registers[preparation.result].bytes;
  const bool negate = preparation.kind == Preparation::Kind::kNegate;
  const std::string_view opcode = negate ? "not.pred" : bytes == 4 ? "add.s32" : "add.s64";
  const std::vector<InstructionTable::Candidate>& candidates = table_.find(opcode);
  if (candidates.empty())
    fail_at_line(line, fmt::format("the table has no `{}`, which an operand needs", opcode));
  BoundOperands bound;
  bound.step.d = preparation.result;
  bound.step.a = preparation.source;
  bound.accesses = {{preparation.result, false, true}, {preparation.source, true, false}};
  if (!negate) {
    bound.step.b = binder_.preset(Preset::Kind::kBits, addend_bits(preparation.addend, bytes), bytes);
    bound.accesses.push_back({bound.step.b, true, false});
  }
  append(opcode, bound, select(opcode, candidates[0], &bound), line, {});
}

void Emitter::append(std::string_view opcode, const BoundOperands& bound, Body body, std::uint32_t line,
                     Guard guard) {
  DraftStep drafted;
  drafted.step = bound.step;
  drafted.step.body = body;
  drafted.step.line = line;
  drafted.step.form = form_number(opcode);
  drafted.step.guard = guard.predicate;
  drafted.step.guard_negated = guard.negated;
  drafted.step.list_size = std::uint16_t(bound.list.size());
  drafted.step.writes_list = std::any_of(bound.accesses.begin(), bound.accesses.end(), [&](const Access& a) {
    return a.written &&
           std::find(bound.list.begin(), bound.list.end(), a.register_number) != bound.list.end();
  });
  drafted.source = source;
  drafted.list_begin = std::uint32_t(draft.lists.size());
  draft.lists.insert(draft.lists.end(), bound.list.begin(), bound.list.end());
  drafted.access_begin = std::uint32_t(draft.accesses.size());
  draft.accesses.insert(draft.accesses.end(), bound.accesses.begin(), bound.accesses.end());
  if (guard.predicate != kNone) draft.accesses.push_back({guard.predicate, true, false});
  drafted.access_end = std::uint32_t(draft.accesses.size());
  drafted.branches = !bound.label.empty();
  drafted.ends = opcode == "ret" || opcode == "ret.uni" || opcode == "exit" || opcode == "trap";
  if (opcode.starts_with("tcgen05.ld.")) drafted.asynchronous = Asynchronous::kTensorLoad;
  if (opcode.starts_with("wgmma.mma_async.")) drafted.asynchronous = Asynchronous::kProduct;
  if (opcode.starts_with("tcgen05.wait::ld.")) drafted.waits_for_all = Asynchronous::kTensorLoad;
  if (opcode.starts_with("wgmma.wait_group.") && bound.step.immediate == 0) {
    drafted.waits_for_all = Asynchronous::kProduct;
  }
  if (drafted.branches) branches.push_back({draft.steps.size(), bound.label, names.current()});
  communicates |= observes_other_ctas(opcode);
  cancels_launches |= opcode.starts_with("clusterlaunchcontrol.try_cancel.");
  draft.steps.push_back(drafted);
}

std::uint16_t Emitter::form_number(std::string_view opcode) {
  auto [place, fresh] = form_numbers_.try_emplace(opcode, std::uint16_t(forms.size()));
  if (fresh) forms.emplace_back(opcode);
  return place->second;
}

}  // namespace flashback::emulator
