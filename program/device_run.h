// One pass on a device, from values to values, with every byte that the kernels should write
// poisoned first.
#pragma once

#include <string>
#include <vector>

#include "attention/problem.h"
#include "program/lengths.h"

namespace flashback::program {

// Packed (batch, row, head, channel) in the bits of the problem's dtype; lse (batch, head, row).
struct DeviceInputs {
  std::vector<std::uint16_t> q, k, v, out, dout;
  std::vector<float> lse;
  std::vector<float> dlse = {}, sink = {};  // empty: none
  Lengths lengths = {};
};

struct DeviceGradients {
  std::vector<std::uint16_t> dq, dk, dv;
  std::vector<float> dsink;          // empty without a sink
  std::vector<std::string> entries;  // the kernels that ran, in order
  double seconds = 0;                // of device time; on the emulator of wall time
};

// Throws a Failure. Outputs, the workspace and a margin around every tensor hold NaN before the launches; a
// margin that a kernel wrote to is a failure. (Where the device checks bounds itself there are no margins:
// leaving a tensor is a fault.)
DeviceGradients run_on(Workbench& workbench, bool device_checks_bounds, Problem problem,
                       const DeviceInputs& inputs);

// What the forward pass reads of `inputs`: q, k, v, sink and lengths.
struct DeviceOutputs {
  std::vector<std::uint16_t> out;
  std::vector<float> lse;
  std::vector<std::string> entries;
  double seconds = 0;
};

// The same for the forward pass.
DeviceOutputs run_forward_on(Workbench& workbench, bool device_checks_bounds, Problem problem,
                             const DeviceInputs& inputs);

}  // namespace flashback::program
