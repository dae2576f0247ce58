// What a run found, as a table for people and as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "program/distribution.h"
#include "program/judged_run.h"

namespace flashback::program {

struct InputStatistics {  // of a file's tensors
  std::string file;
  Distribution q, k, v, dout;
  Range lse;
};

struct RunReport {
  Arch arch = Arch::kSm100;
  std::string device;  // emulator | cuda:0
  Problem problem;     // shape, dtype, mask, scale
  std::string values;  // "data normal, seed 0" or the file
  std::optional<InputStatistics> inputs;
  std::vector<std::string> notes;
  std::vector<VariantResult> results;  // at least one
  double wall_seconds = 0;             // of the command, references included

  bool emulated() const { return device == "emulator"; }
  bool ok() const;
};

// One variant: its fields stand at the top. Several: in `variants`, with `identical` to tell which gradients
// agree bit for bit.
nlohmann::ordered_json to_json(const RunReport& report);
std::string to_text(const RunReport& report);

nlohmann::ordered_json to_json(const Shape& shape);
std::string to_text(
    const Problem& problem);  // "batch 1, heads 1, seqlen 128 x 128, head dim 64, bf16, dense, scale 0.125"

}  // namespace flashback::program
