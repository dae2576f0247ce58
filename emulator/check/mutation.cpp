#include "emulator/check/mutation.h"

#include <fmt/format.h>

#include <algorithm>

namespace flashback::emulator::checking {
namespace {

// An instruction of one line: its text without guard and blanks, cut at its blanks and commas.
struct Instruction {
  std::string_view text;    // "mbarrier.try_wait... done, [%r1], %r2;"
  std::string_view opcode;  // up to the first blank
  std::vector<std::string> operands;
};

Instruction parse(std::string_view text) {
  Instruction instruction;
  instruction.text = text;
  const std::size_t end = text.find_first_of(" \t;");
  instruction.opcode = text.substr(0, end);
  std::string operand;
  for (const char c : text.substr(end == text.npos ? text.size() : end)) {
    if (c == ',' || c == ';') {
      if (!operand.empty()) instruction.operands.push_back(operand);
      operand.clear();
    } else if (c != ' ' && c != '\t') {
      operand += c;
    }
  }
  return instruction;
}

struct Change {
  std::string what, replacement;
};

// What the waited-for parity becomes: its literal or register, inverted.
std::string other_parity(const Instruction& wait) {
  const std::string& parity = wait.operands[2];
  if (parity[0] != '%') {
    return fmt::format("{} {}, {}, {};", wait.opcode, wait.operands[0], wait.operands[1],
                       parity == "0" ? "1" : "0");
  }
  return fmt::format("{{ .reg .b32 other_parity; xor.b32 other_parity, {}, 1; {} {}, {}, other_parity; }}",
                     parity, wait.opcode, wait.operands[0], wait.operands[1]);
}

std::string fewer_bytes(const Instruction& expect) {
  std::string operands;
  for (std::size_t i = 0; i + 1 < expect.operands.size(); ++i) operands += expect.operands[i] + ", ";
  return fmt::format("{{ .reg .b32 fewer_bytes; add.s32 fewer_bytes, {}, -16; {} {}fewer_bytes; }}",
                     expect.operands.back(), expect.opcode, operands);
}

std::vector<Change> changes_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  const auto is = [&](std::string_view prefix) { return opcode.starts_with(prefix); };
  std::vector<Change> changes;
  if (is("mbarrier.try_wait")) {
    changes.push_back({"dropped", fmt::format("setp.eq.u32 {}, 0, 0;", instruction.operands[0])});
    if (is("mbarrier.try_wait.parity"))
      changes.push_back({"waits for the other parity", other_parity(instruction)});
    return changes;
  }
  constexpr std::string_view kDropped[] = {
      "mbarrier.arrive",
      "mbarrier.expect_tx",
      "fence.",
      "membar",
      "bar.",
      "barrier.",
      "tcgen05.wait",
      "tcgen05.fence",
      "tcgen05.commit",
      "cp.async.wait",
      "cp.async.bulk.commit_group",
      "cp.async.commit_group",
      "cp.async.bulk.wait_group",
      "cp.async.mbarrier.arrive",
      "wgmma.fence",
      "wgmma.commit_group",
      "wgmma.wait_group",
  };
  if (std::any_of(std::begin(kDropped), std::end(kDropped), is)) changes.push_back({"dropped", ""});
  if (opcode.find(".expect_tx") != opcode.npos)
    changes.push_back({"expects 16 bytes fewer", fewer_bytes(instruction)});
  for (const std::string_view order : {".acquire", ".release"}) {
    const bool accesses = is("ld.") || is("st.") || is("red.") || is("atom.");
    if (const std::size_t at = opcode.find(order); accesses && at != opcode.npos) {
      changes.push_back(
          {"made relaxed", std::string(instruction.text).replace(at, order.size(), ".relaxed")});
    }
  }
  return changes;
}

}  // namespace

std::vector<Mutation> mutations(std::string_view ptx, std::string_view entry) {
  std::vector<Mutation> all;
  const std::size_t start = ptx.find(fmt::format(".entry {}(", entry));
  if (start == ptx.npos) return all;
  const std::size_t end = std::min(ptx.find(".entry ", start + 1), ptx.size());
  auto line = 1 + static_cast<std::uint32_t>(
                      std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
  std::string section;
  for (std::size_t at = start; at < end; ++line) {
    const std::size_t stop = std::min(ptx.find('\n', at), end);
    std::size_t begin = ptx.find_first_not_of(" \t", at);
    if (begin < stop && ptx[begin] == '@')
      begin = ptx.find_first_not_of(" \t", ptx.find_first_of(" \t", begin));
    constexpr std::string_view kMark = "//@ ";
    if (ptx.substr(begin).starts_with(kMark)) {
      const std::size_t name = begin + kMark.size();
      section = ptx.substr(name, ptx.find_last_not_of(" \t\r", stop - 1) + 1 - name);
    }
    const std::size_t semicolon = ptx.find(';', begin);
    if (begin < stop && semicolon < stop) {
      const std::string_view text = ptx.substr(begin, semicolon + 1 - begin);
      for (const Change& change : changes_of(parse(text))) {
        // A guard before it needs an instruction to guard.
        const bool guarded = ptx[ptx.find_first_not_of(" \t", at)] == '@';
        const std::size_t from = guarded ? ptx.find_first_not_of(" \t", at) : begin;
        const std::string kept =
            change.replacement.empty() ? "" : std::string(ptx.substr(from, begin - from));
        all.push_back({line, section, std::string(text), change.what, from, semicolon + 1 - from,
                       kept + change.replacement});
      }
    }
    at = stop + 1;
  }
  return all;
}

std::string mutated(std::string_view ptx, const Mutation& mutation) {
  std::string text(ptx);
  return text.replace(mutation.begin, mutation.bytes, mutation.replacement);
}

}  // namespace flashback::emulator::checking
