// The suite `host`: how long a call of flashback_backward keeps the processor, the driver's part aside.
#pragma once

#include <string>
#include <vector>

#include "device/cuda_driver.h"

namespace flashback::bench {

// Microseconds of a call, each the median of all calls. Calls come in pairs: the first is timed whole, with
// no clock inside; in the second a clock around each function of the driver tells what the driver takes. The
// device's context is the thread's, as a framework leaves it.
struct HostTime {
  double whole_us = 0;
  double launch_and_encode_us = 0;  // inside cuLaunchKernelEx and cuTensorMapEncodeTiled
  double own_us = 0;           // the rest: reading, checking, planning, and asking for the current context
  double other_driver_us = 0;  // of that, inside other functions of the driver
  int driver_calls = 0;
  int calls = 0;  // pairs of them
};

// On device `ordinal` of `driver`. Throws a Failure.
HostTime measure_host(const cuda::Driver& driver, int ordinal, int calls);

}  // namespace flashback::bench
