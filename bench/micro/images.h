// The probes, as nvcc compiled them for each architecture.
#pragma once

#include "device/device.h"

namespace flashback::micro {

const KernelImage& image(Arch arch);

}  // namespace flashback::micro
