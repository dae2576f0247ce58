#include "program/check_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace flashback::program {
namespace {

using emulator::checking::Finding;

std::string to_text(const Mutant& mutant) {
  const emulator::checking::Mutation& m = mutant.mutation;
  std::string text =
      fmt::format("{} PTX line {} ({}) `{}` {}", mutant.killed_by.empty() ? "survived" : "killed  ", m.line,
                  m.section, m.instruction, m.change);
  if (!mutant.killed_by.empty()) return text + ": " + mutant.killed_by;
  return text + ": " + mutant.reason.value_or(mutant.reached ? "NOT EXPLAINED" : "NOT REACHED");
}

std::string summary(const std::vector<Mutant>& mutants) {
  std::size_t killed = 0, explained = 0;
  for (const Mutant& m : mutants) {
    killed += !m.killed_by.empty();
    explained += m.killed_by.empty() && m.reason;
  }
  return fmt::format("{} mutants: {} killed, {} survived with a reason, {} not explained", mutants.size(),
                     killed, explained, mutants.size() - killed - explained);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ", ") + w;
  return text;
}

}  // namespace

bool Checked::ok() const {
  return findings.empty() && failures.empty() &&
         std::all_of(mutants.begin(), mutants.end(), [](const Mutant& m) { return m.ok(); });
}

bool CheckReport::ok() const {
  return failures.empty() &&
         std::all_of(checked.begin(), checked.end(), [](const Checked& c) { return c.ok(); });
}

std::string to_text(const CheckReport& report) {
  std::string text = report.subject + "\n";
  if (!report.schedules.empty()) {
    text += fmt::format("schedules {}{}\n", joined(report.schedules), report.strict ? ", strict" : "");
  }
  // Of many kernels the mutants that are as they should be fill many pages; JSON has them all.
  const bool lists_all = report.checked.size() == 1;
  for (const Checked& c : report.checked) {
    text += fmt::format("\n{}: {}\n", c.name,
                        !c.mutants.empty() ? summary(c.mutants)
                        : c.ok()           ? "nothing found"
                                           : "");
    for (const Mutant& mutant : c.mutants) {
      if (lists_all || !mutant.ok()) text += fmt::format("  {}\n", to_text(mutant));
    }
    for (const std::string& failure : c.failures) text += fmt::format("  error: {}\n", failure);
    for (const Finding& f : c.findings) {
      text += fmt::format("  {}\n", emulator::checking::to_text(f));
    }
  }
  for (const std::string& failure : report.failures) text += fmt::format("\nerror: {}\n", failure);
  return text + fmt::format("\n{:.1f} s, emulated\n", report.wall_seconds);
}

nlohmann::ordered_json to_json(const CheckReport& report) {
  nlohmann::ordered_json json = {{"subject", report.subject},   {"schedules", report.schedules},
                                 {"strict", report.strict},     {"ok", report.ok()},
                                 {"failures", report.failures}, {"checked", nlohmann::ordered_json::array()}};
  for (const Checked& c : report.checked) {
    nlohmann::ordered_json one = {
        {"name", c.name}, {"failures", c.failures}, {"findings", nlohmann::ordered_json::array()}};
    for (const Finding& f : c.findings) {
      one["findings"].push_back(emulator::checking::to_json(f));
    }
    if (!c.mutants.empty()) one["mutants"] = nlohmann::ordered_json::array();
    for (const Mutant& m : c.mutants) {
      one["mutants"].push_back({{"line", m.mutation.line},
                                {"section", m.mutation.section},
                                {"instruction", m.mutation.instruction},
                                {"change", m.mutation.change},
                                {"reached", m.reached},
                                {"killed_by", m.killed_by},
                                {"reason", m.reason.value_or("")}});
    }
    json["checked"].push_back(std::move(one));
  }
  json["wall_seconds"] = report.wall_seconds;
  return json;
}

}  // namespace flashback::program
