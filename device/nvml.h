// What a GPU reports of itself while it works: power, clocks, temperature. Through NVIDIA's management
// library (NVML), opened at run time as the driver is. Only reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/status.h"

namespace flashback {

struct GpuReading {
  double watts = 0;  // on Hopper the mean of about a second
  double sm_mhz = 0, memory_mhz = 0;
  double celsius = 0;
  std::uint64_t clock_reasons = 0;  // bits of NVML: 0x1 idle, 0x4 power cap, 0x20 and 0x40 heat, ...
};

class GpuSensors {
 public:
  virtual ~GpuSensors() = default;
  virtual Status read(GpuReading* reading) = 0;
  virtual Status driver_version(std::string* version) = 0;  // 580.159.04
  virtual Status power_limit(double* watts) = 0;
};

// Of the GPU at this PCI bus address; a sentence where the library is not installed.
Status open_nvml(const std::string& bus, std::unique_ptr<GpuSensors>* sensors);

}  // namespace flashback
