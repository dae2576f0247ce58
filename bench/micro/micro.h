// Constants of the timing model, measured on a GPU: each probe n and 2 n times, the difference over what it
// did, in cycles by the time of a dependent addition, which takes four.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/device.h"

namespace flashback::micro {

struct Measured {
  std::string name;  // of the probe
  std::string what;
  std::string unit;
  double value = 0;
  std::string constant;  // of the timing model that it settles; empty where none
};

// Runs every probe of the workbench's architecture; `effort` scales the repetitions (1 on a GPU, 0 the
// fewest, to see that they run). `began` hears of each. The first row is the length of a cycle.
Status measure(Workbench& workbench, double effort, const std::function<void(const std::string&)>& began,
               std::vector<Measured>* measured);

}  // namespace flashback::micro
