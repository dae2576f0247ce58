// The kernels of the bench, compiled; no part of the library.
#pragma once

#include "device/device.h"

namespace flashback::bench {

const KernelImage& kernels_for(Arch arch);

}  // namespace flashback::bench
