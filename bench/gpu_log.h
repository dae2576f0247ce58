// What the GPU reports of itself over a stretch of time, read by a thread beside the work.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "device/nvml.h"

namespace flashback::bench {

class GpuLog {
 public:
  // Reads from now on, every 20 ms. Without sensors it stays empty.
  explicit GpuLog(GpuSensors* sensors);
  ~GpuLog() { stop(); }
  GpuLog(const GpuLog&) = delete;
  GpuLog& operator=(const GpuLog&) = delete;

  // The readings until now; the last call ends the reading.
  std::vector<GpuReading> stop();

 private:
  void read();

  GpuSensors* const sensors_;
  std::mutex mutex_;
  std::condition_variable stopped_signal_;
  bool stopped_ = false;
  std::vector<GpuReading> readings_;
  std::thread reader_;
};

// Of each quantity the median, of the reasons all bits that were seen.
GpuReading summary(const std::vector<GpuReading>& readings);

}  // namespace flashback::bench
