#include "bench/host.h"

#include "attention/device_handle.h"
#include "bench/cell_data.h"
#include "bench/driver_clock.h"
#include "bench/median.h"
#include "device/cuda_device.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using program::require;

// As a framework leaves it: the device's primary context is the thread's.
class CurrentContext {
 public:
  CurrentContext(const cuda::Driver& driver, int ordinal) : driver_(driver) {
    require(driver.status(driver.device_get(&device_, ordinal), "cuDeviceGet"));
    cuda::Context context = nullptr;
    require(driver.status(driver.primary_context_retain(&context, device_), "cuDevicePrimaryCtxRetain"));
    require(driver.status(driver.context_push(context), "cuCtxPushCurrent"));
  }
  ~CurrentContext() {
    cuda::Context context = nullptr;
    driver_.context_pop(&context);
    driver_.primary_context_release(device_);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const cuda::Driver& driver_;
  cuda::DeviceNumber device_ = 0;
};

constexpr int kWarmCalls = 100;  // the first loads the kernels
// Calls of three launches; a full queue makes the driver wait for the GPU.
constexpr int kPairsInQueue = 32;

}  // namespace

HostTime measure_host(const cuda::Driver& driver, int ordinal, int calls) {
  const cuda::Driver clocked = timed(driver);
  cuda::Driver table = driver;
  const CurrentContext current(driver, ordinal);
  flashback_device device;
  require(cuda::open_device(table, ordinal, &device.workbench));
  Workbench& workbench = *device.workbench;
  Stream stream = nullptr;
  require(workbench.open_stream(&stream));
  HostTime median_time;
  {
    // The time does not depend on the shape, and not on the values.
    CellData data(workbench, stream, {Mask::kCausal, {1, 2, 2, 256, 256, 64}});
    const std::unique_ptr<Contender> ours = make_ours(&device);
    ours->begin(data.pass(0));
    std::vector<double> whole, launch_and_encode, own, other;
    for (int pair = -kWarmCalls; pair < calls; ++pair) {
      if (pair % kPairsInQueue == 0) require(workbench.wait(stream));
      // Reading a clock holds the processor up, the code around it too: a call is timed whole, and the
      // driver's part of it in the call after.
      table = driver;
      const double of_call = nanoseconds_of([&] { ours->enqueue(); });
      table = clocked;
      reset_driver_time();
      ours->enqueue();
      if (pair < 0) continue;
      const DriverTime of_driver = driver_time();
      whole.push_back(of_call);
      launch_and_encode.push_back(of_driver.launch_and_encode_ns);
      own.push_back(of_call - of_driver.launch_and_encode_ns);
      other.push_back(of_driver.other_ns);
      median_time.driver_calls = of_driver.calls;
    }
    require(workbench.wait(stream));
    table = driver;
    median_time.whole_us = median(whole) / 1000;
    median_time.launch_and_encode_us = median(launch_and_encode) / 1000;
    median_time.own_us = median(own) / 1000;
    median_time.other_driver_us = median(other) / 1000;
    median_time.calls = calls;
  }
  workbench.close_stream(stream);
  return median_time;
}

}  // namespace flashback::bench
