// What a kept result must say of how it came about.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace flashback::program {

struct Provenance {
  std::string card;     // NVIDIA H200
  std::string driver;   // 580.159.04
  std::string date;     // 2026-11-29T19:50:07Z
  std::string commit;   // of the sources, "-dirty" where they differ from it
  std::string command;  // as it was typed, the quotes aside
};

// Card and driver are the caller's to fill in.
Provenance here_and_now();

nlohmann::ordered_json to_json(const Provenance& provenance);

}  // namespace flashback::program
