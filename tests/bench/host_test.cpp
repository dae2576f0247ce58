#include "bench/host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "attention/device_handle.h"
#include "bench/cell_data.h"
#include "bench/driver_clock.h"
#include "device/cuda_device.h"

// Every allocation of this program is counted.
static std::atomic<int> allocations;
void* operator new(std::size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace flashback::bench {
namespace {

// Nor does any call take memory from the heap once its kernels are loaded.
TEST(Host, AWarmCallAllocatesNothing) {
  for (const int major : {9, 10}) {
    const cuda::Driver driver = null_driver(major);
    flashback_device device;
    ASSERT_TRUE(cuda::open_device(driver, 0, &device.workbench).ok());
    CellData data(*device.workbench, nullptr, {Mask::kCausal, {1, 2, 2, 256, 256, 64}});
    const std::unique_ptr<Contender> ours = make_ours(&device);
    ours->begin(data.pass(0));
    int before = allocations;
    ours->enqueue();
    EXPECT_GT(allocations, before) << "the first call loads its kernels";
    before = allocations;
    for (int call = 0; call < 3; ++call) ours->enqueue();
    EXPECT_EQ(allocations, before) << "compute capability " << major << ".0";
  }
}

// What is inside of the driver's launch and encode is the driver's, and nothing else is.
TEST(Host, TimeInTheDriverIsNotOurs) {
  static int launches;
  launches = 0;
  cuda::Driver slow = null_driver(9);
  slow.launch = [](const cuda::LaunchConfig*, cuda::Function, void**, void**) {
    ++launches;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return 0;
  };
  const HostTime time = measure_host(slow, 0, 5);
  EXPECT_GE(launches, 5);
  EXPECT_GE(time.launch_and_encode_us, 2000);
  EXPECT_LT(time.own_us, 2000);
  EXPECT_NEAR(time.own_us + time.launch_and_encode_us, time.whole_us, 0.1 * time.whole_us);
  EXPECT_GT(time.driver_calls, 6);  // each launch and encode asks for the context
  EXPECT_EQ(time.calls, 5);
}

TEST(Host, RunsWhereThereIsNoDriver) {
  for (const int major : {9, 10}) {
    const HostTime time = measure_host(null_driver(major), 0, 50);
    EXPECT_GT(time.own_us, 0);
    EXPECT_LT(time.launch_and_encode_us, time.whole_us);
    EXPECT_GE(time.own_us, time.other_driver_us);
  }
}

}  // namespace
}  // namespace flashback::bench
