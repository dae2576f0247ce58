// The suites of `flashback bench` that need a GPU or the library itself; bench.cpp chooses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/suites.h"
#include "program/failure.h"

namespace flashback::program {

// As typed.
struct PassSuiteOptions {
  bench::Suite suite = bench::Suite::kBackward;  // or kForward; or kHeadline, kSweep: their cells on a GPU
  std::optional<std::string> device;
  std::string protocol = "both", cells;
  std::vector<std::string> peers;
  bool json = false;
};
ExitCode bench_passes(const PassSuiteOptions& options);
// Without a device on a driver that does nothing; with one on both.
ExitCode bench_host(const std::optional<std::string>& device, bool json);

// The N of "cuda:N".
int parse_cuda_device(const std::string& text, std::string_view suite);

}  // namespace flashback::program
