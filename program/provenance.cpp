#include "program/provenance.h"

#include <fmt/chrono.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "commit.h"

namespace flashback::program {
namespace {

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line, word;
  while (std::getline(file, word, '\0'))
    line += line.empty() ? std::filesystem::path(word).filename().string() : " " + word;
  return line;
}

}  // namespace

Provenance here_and_now() {
  return {"", "", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))), FLASHBACK_COMMIT,
          command_line()};
}

nlohmann::ordered_json to_json(const Provenance& provenance) {
  return {{"card", provenance.card},
          {"driver", provenance.driver},
          {"date", provenance.date},
          {"commit", provenance.commit},
          {"command", provenance.command}};
}

}  // namespace flashback::program
