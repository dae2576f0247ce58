// Kernels by the driver's handles.
#pragma once

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {

// CUfunction and CUkernel are one. Refuses what is neither.
inline Function& function_of(const void* handle) {
  return process().functions.of(handle);
}

}  // namespace flashback::emulator::cuda::driver
