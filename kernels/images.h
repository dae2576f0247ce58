// The compiled kernels that are part of this library.
#pragma once

#include <span>

#include "device/device.h"

namespace flashback {

std::span<const KernelImage> kernel_images();

}  // namespace flashback
