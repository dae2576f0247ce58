// What `flashback check` prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/check/finding.h"
#include "program/mutation_run.h"

namespace flashback::program {

// One program, or variant, under all schedules.
struct Checked {
  std::string name;
  std::vector<emulator::checking::Finding> findings;
  std::vector<std::string> failures;  // what the machine or the results say, a sentence each
  std::vector<Mutant> mutants;        // with --mutate

  bool ok() const;
};

struct CheckReport {
  std::string subject;  // "backward, batch 1, ..."
  std::vector<std::string> schedules;
  bool strict = false;
  std::vector<Checked> checked;
  std::vector<std::string> failures;  // of none of them in particular
  double wall_seconds = 0;

  bool ok() const;
};

std::string to_text(const CheckReport& report);
nlohmann::ordered_json to_json(const CheckReport& report);

}  // namespace flashback::program
