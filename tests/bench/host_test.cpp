#include "bench/host.h"

#include <gtest/gtest.h>

#include <thread>

#include "bench/driver_clock.h"

namespace flashback::bench {
namespace {

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
  EXPECT_GT(time.driver_calls, 3);  // a launch lies between a push and a pop
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
