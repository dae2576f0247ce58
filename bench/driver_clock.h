// A driver that is timed from outside: every function that its table lends to the library adds up the time
// that it takes. And a driver that does nothing, for machines that have none.
#pragma once

#include <algorithm>
#include <chrono>

#include "device/cuda_driver.h"

namespace flashback::bench {

// What reading the clock takes: an interval with nothing in it.
double empty_interval_ns();
// What `body` takes, without reading the clock.
template <class Body>
double nanoseconds_of(Body body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double, std::nano> interval = std::chrono::steady_clock::now() - start;
  return std::max(interval.count() - empty_interval_ns(), 0.0);
}

// Without what reading the clock takes.
struct DriverTime {
  double launch_and_encode_ns = 0;  // cuLaunchKernelEx and cuTensorMapEncodeTiled
  double other_ns = 0;              // asking for the current context
  int calls = 0;
};

// `driver` with a clock around each function; one at a time in a process, and `driver` outlives it.
cuda::Driver timed(const cuda::Driver& driver);
// Of all calls since the last reset, by this thread and by others.
void reset_driver_time();
DriverTime driver_time();

// Every function succeeds at once. One device, of compute capability `major`.0.
cuda::Driver null_driver(int major);

}  // namespace flashback::bench
