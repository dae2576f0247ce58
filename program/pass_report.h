// What the suites `backward` and `forward` found, as a table for people and as JSON to keep. bench/peers.py
// writes the same JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/pass_suite.h"
#include "program/provenance.h"

namespace flashback::program {

struct PassReport {
  std::string suite;  // backward, forward, headline, sweep
  Provenance provenance;
  std::optional<double> power_limit_watts;  // nothing: NVML is not there, and no timing has readings
  std::vector<bench::Protocol> protocols;
  std::vector<bench::CellResult> cells;

  bool ok() const;
};

nlohmann::ordered_json to_json(const PassReport& report);
std::string to_text(const PassReport& report);

}  // namespace flashback::program
