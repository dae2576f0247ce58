// What an H200 gave, kept as a file: golden/<experiment>.txt.
//
//     # NVIDIA H200, driver 580.159.04, 2026-11-29
//     # of 0123456789abcdef                       the experiment's fingerprint
//     d u32 1 2*31                                the words of a buffer; `v*n` is n times v
//     product u32 digest 2048 0123456789abcdef    or a digest for each 2048 words
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {

struct Golden {
  std::string machine;  // "NVIDIA H200, driver 580.159.04, 2026-11-29"
  std::uint64_t fingerprint = 0;
  std::map<std::string, std::string, std::less<>> buffers;  // what stands after the name
};

std::string golden_folder(const std::string& source);
std::string golden_path(const std::string& source, const std::string& experiment);
// Nothing where there is no such file.
std::optional<Golden> read_golden(const std::string& path);
std::string golden_text(const std::string& machine, const Experiment& experiment, const Results& results);

// Where `results` leave what the golden file says or its bounds, in sentences; empty where nowhere.
std::string difference(const Golden& golden, const Experiment& experiment, const Results& results);

// The same for two results, the first of which is to be right.
std::string difference(const Experiment& experiment, const Results& right, const Results& results);

}  // namespace flashback::emulator::testing
