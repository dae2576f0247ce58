// What the opaque handle of the C API points to.
#pragma once

#include <memory>

#include "device/device.h"
#include "flashback/flashback.h"

struct flashback_device {
  std::unique_ptr<flashback::Workbench> workbench;
};
