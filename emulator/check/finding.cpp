#include "emulator/check/finding.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace flashback::emulator::checking {
namespace {

const char* word(Severity severity) {
  return severity == Severity::kError ? "error" : "advice";
}

}  // namespace

std::string to_text(const Finding& finding) {
  return fmt::format("{} {}{}: {}", word(finding.severity), finding.rule,
                     finding.count == 1 ? "" : fmt::format(" ({} times)", finding.count), finding.sentence);
}

nlohmann::ordered_json to_json(const Finding& finding) {
  return {{"rule", finding.rule},
          {"severity", word(finding.severity)},
          {"kernel", finding.kernel},
          {"count", finding.count},
          {"sentence", finding.sentence}};
}

}  // namespace flashback::emulator::checking
