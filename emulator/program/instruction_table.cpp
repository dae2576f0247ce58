#include "emulator/program/instruction_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace flashback::emulator {

InstructionTable::InstructionTable(std::span<const std::span<const Row>> families) {
  for (std::span<const Row> family : families) {
    for (const Row& row : family) {
      Entry entry{&row, Form(row.form), parse_operand_patterns(row.operands)};
      entries_[entry.form.first_piece()].push_back(std::move(entry));
    }
  }
}

const std::vector<InstructionTable::Candidate>& InstructionTable::find(std::string_view opcode) {
  auto [place, fresh] = found_.try_emplace(opcode);
  if (fresh) {
    std::vector<std::string_view> choices;
    if (auto rows = entries_.find(first_piece(opcode)); rows != entries_.end()) {
      for (const Entry& entry : rows->second) {
        if (entry.form.match(opcode, &choices)) place->second.push_back({&entry, choices});
      }
    }
  }
  return place->second;
}

std::string InstructionTable::nearest(std::string_view opcode) const {
  auto common = [&](std::string_view form) {
    return std::mismatch(form.begin(), form.end(), opcode.begin(), opcode.end()).first - form.begin();
  };
  std::vector<std::string_view> forms;
  if (auto rows = entries_.find(first_piece(opcode)); rows != entries_.end()) {
    for (const Entry& entry : rows->second) {
      if (std::find(forms.begin(), forms.end(), entry.form.text()) == forms.end())
        forms.push_back(entry.form.text());
    }
  }
  std::stable_sort(forms.begin(), forms.end(), [&](auto x, auto y) { return common(x) > common(y); });
  if (forms.size() > 4) forms.resize(4);
  return fmt::format("{}", fmt::join(forms, "  "));
}

}  // namespace flashback::emulator
