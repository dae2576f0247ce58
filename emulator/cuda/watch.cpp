#include "emulator/cuda/watch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "emulator/check/checker.h"
#include "emulator/cuda/environment.h"
#include "emulator/cuda/error.h"
#include "emulator/cuda/report.h"

namespace flashback::emulator::cuda {
namespace {

using checking::Checker;
using checking::Finding;

void write_findings(const std::vector<Finding>& findings, const std::string& file) {
  nlohmann::ordered_json json = {{"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : findings) json["findings"].push_back(checking::to_json(finding));
  std::ofstream out(file);
  if (!(out << json.dump(2) << '\n')) report_failure(fmt::format("{} cannot be written", file));
}

// Runs when the program has returned from main or called exit.
void at_end(int status, void* checker) {
  const std::vector<Finding>& findings = static_cast<const Checker*>(checker)->findings();
  if (const char* file = std::getenv(kFindingsVariable); file != nullptr && *file != '\0') {
    write_findings(findings, file);
  } else {
    report_findings(findings);
  }
  if (!findings.empty() && status == 0) end_program(1);
}

}  // namespace

Observer* chosen_observer() {
  const char* value = std::getenv(kCheckVariable);
  const std::string word = value == nullptr ? "" : value;
  if (word.empty()) return nullptr;
  if (word != "errors" && word != "strict") {
    refuse(Error::kNotInitialized,
           fmt::format("{} is {}; errors and strict are accepted", kCheckVariable, word));
  }
  auto* const checker = new Checker(word == "strict");  // as long as the process
  on_exit(at_end, checker);
  return checker;
}

}  // namespace flashback::emulator::cuda
