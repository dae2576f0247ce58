// How a kernel of someone else is launched, from a JSON file; examples/check/launch.json is one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "device/device.h"

namespace flashback::program {

struct LaunchSpec {
  struct Parameter {
    enum class Kind { kScalar, kBuffer, kTensorMap };
    Kind kind = Kind::kScalar;
    std::vector<std::byte> scalar;    // its bits
    std::string name;                 // of a buffer, for tensor maps
    std::vector<std::byte> contents;  // of a buffer
    TensorMapRequest map;             // without its base
    std::string buffer;               // that a tensor map describes
  };
  std::string entry;
  Dim3 grid, cluster, block;
  std::uint32_t shared_bytes = 0;
  std::vector<Parameter> parameters;
};

// Refuses, naming the key, what is missing, misspelt or out of range.
LaunchSpec read_launch_spec(const std::filesystem::path& file);
// Allocates its buffers and launches it.
Status launch(Workbench& workbench, const LaunchSpec& spec, const std::string& ptx);

}  // namespace flashback::program
