#include "device/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace flashback {
namespace {

using Result = int;  // 0 is success
using Gpu = struct OpaqueGpu*;
enum ClockType : int { kSmClock = 1, kMemoryClock = 2 };
enum TemperatureSensor : int { kGpuTemperature = 0 };

#define FLASHBACK_NVML_FUNCTIONS(F)                                                                \
  F(init, nvmlInit_v2, ())                                                                         \
  F(by_bus, nvmlDeviceGetHandleByPciBusId_v2, (const char* bus, Gpu* gpu))                         \
  F(driver_version, nvmlSystemGetDriverVersion, (char* version, unsigned size))                    \
  F(power, nvmlDeviceGetPowerUsage, (Gpu gpu, unsigned* milliwatts))                               \
  F(power_limit, nvmlDeviceGetEnforcedPowerLimit, (Gpu gpu, unsigned* milliwatts))                 \
  F(clock, nvmlDeviceGetClockInfo, (Gpu gpu, ClockType type, unsigned* mhz))                       \
  F(temperature, nvmlDeviceGetTemperature, (Gpu gpu, TemperatureSensor sensor, unsigned* celsius)) \
  F(clock_reasons, nvmlDeviceGetCurrentClocksThrottleReasons, (Gpu gpu, unsigned long long* reasons))

struct Nvml {
#define FLASHBACK_DECLARE(member, symbol, parameters) Result(*member) parameters = nullptr;
  FLASHBACK_NVML_FUNCTIONS(FLASHBACK_DECLARE)
#undef FLASHBACK_DECLARE
  const char* (*error_string)(Result) = nullptr;

  Status status(Result result, const char* call) const {
    if (result == 0) return {};
    return device_failure(fmt::format("{}: {}", call, error_string(result)));
  }
};

constexpr const char* kLibrary = "libnvidia-ml.so.1";

Status load(Nvml* nvml) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return device_failure(fmt::format("no NVML on this machine: {}", dlerror()));
#define FLASHBACK_LOAD(member, symbol, parameters)                                  \
  nvml->member = reinterpret_cast<decltype(nvml->member)>(dlsym(library, #symbol)); \
  if (!nvml->member) return device_failure(fmt::format("NVML ({}) has no {}", kLibrary, #symbol));
  FLASHBACK_NVML_FUNCTIONS(FLASHBACK_LOAD)
  FLASHBACK_LOAD(error_string, nvmlErrorString, )
#undef FLASHBACK_LOAD
  return nvml->status(nvml->init(), "nvmlInit");
}

class NvmlSensors final : public GpuSensors {
 public:
  NvmlSensors(const Nvml& nvml, Gpu gpu) : nvml_(nvml), gpu_(gpu) {}

  Status read(GpuReading* reading) override {
    unsigned milliwatts = 0, sm = 0, memory = 0, celsius = 0;
    unsigned long long reasons = 0;
    Status s = nvml_.status(nvml_.power(gpu_, &milliwatts), "nvmlDeviceGetPowerUsage");
    if (s.ok()) s = nvml_.status(nvml_.clock(gpu_, kSmClock, &sm), "nvmlDeviceGetClockInfo");
    if (s.ok()) s = nvml_.status(nvml_.clock(gpu_, kMemoryClock, &memory), "nvmlDeviceGetClockInfo");
    if (s.ok())
      s = nvml_.status(nvml_.temperature(gpu_, kGpuTemperature, &celsius), "nvmlDeviceGetTemperature");
    if (s.ok()) {
      s = nvml_.status(nvml_.clock_reasons(gpu_, &reasons), "nvmlDeviceGetCurrentClocksThrottleReasons");
    }
    *reading = {milliwatts / 1000.0, double(sm), double(memory), double(celsius), reasons};
    return s;
  }

  Status driver_version(std::string* version) override {
    char text[80] = {};
    Status s = nvml_.status(nvml_.driver_version(text, sizeof text), "nvmlSystemGetDriverVersion");
    *version = text;
    return s;
  }

  Status power_limit(double* watts) override {
    unsigned milliwatts = 0;
    Status s = nvml_.status(nvml_.power_limit(gpu_, &milliwatts), "nvmlDeviceGetEnforcedPowerLimit");
    *watts = milliwatts / 1000.0;
    return s;
  }

 private:
  const Nvml& nvml_;
  const Gpu gpu_;
};

}  // namespace

Status open_nvml(const std::string& bus, std::unique_ptr<GpuSensors>* sensors) {
  struct Opened {
    Nvml nvml;
    Status status;
    Opened() : status(load(&nvml)) {}
  };
  static const Opened opened;
  if (!opened.status.ok()) return opened.status;
  Gpu gpu = nullptr;
  Status s = opened.nvml.status(opened.nvml.by_bus(bus.c_str(), &gpu), "nvmlDeviceGetHandleByPciBusId");
  if (s.ok()) *sensors = std::make_unique<NvmlSensors>(opened.nvml, gpu);
  return s;
}

}  // namespace flashback
