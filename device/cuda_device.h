// A CUDA device on a driver of the caller's choice, for those who measure what lies between a call and its
// driver.
#pragma once

#include <memory>

#include "device/cuda_driver.h"
#include "device/device.h"

namespace flashback::cuda {

// `driver` outlives the workbench.
Status open_device(const Driver& driver, int ordinal, std::unique_ptr<Workbench>* workbench);

}  // namespace flashback::cuda
