// Where a run takes place.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "attention/problem.h"
#include "device/device.h"

namespace flashback::program {

// The value of --device: the ordinal of a GPU; none: the emulator. Throws a Failure.
std::optional<int> parse_device(const std::string& text);

// `arch` is that of the emulator, or what a GPU must be. Throws a Failure where the device is not to be had.
std::unique_ptr<Workbench> open_device(std::optional<int> cuda, std::optional<Arch> arch, int threads);

// Throws a Failure where a judged run of this shape takes more memory than the machine has.
void demand_memory(const Shape& shape);

}  // namespace flashback::program
