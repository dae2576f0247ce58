// Either pass on the emulator, by the problem's direction.
#pragma once

#include <string>
#include <variant>

#include "program/device_run.h"
#include "program/run_inputs.h"

namespace flashback::program {

using PassResults = std::variant<DeviceGradients, DeviceOutputs>;

// Throws a Failure.
PassResults run_pass(Workbench& emulator, const Problem& problem, const DeviceInputs& inputs);

// The tensors whose bits differ, "dq, dk"; empty where all are the same. With `shuffled`, CTAs started in
// another order in one of the two: tensors whose sums follow that order are left out.
std::string difference(Arch arch, const Problem& problem, const PassResults& a, const PassResults& b,
                       bool shuffled);

}  // namespace flashback::program
