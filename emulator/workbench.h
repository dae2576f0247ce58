// The emulator as a Workbench: global memory is host memory, and a stream is done when its call returns.
#pragma once

#include <memory>

#include "device/device.h"
#include "emulator/machine/machine.h"

namespace flashback::emulator {

std::unique_ptr<Workbench> make_workbench(const MachineOptions& options);

}  // namespace flashback::emulator
