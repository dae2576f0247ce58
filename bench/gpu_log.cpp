#include "bench/gpu_log.h"

#include <chrono>
#include <utility>

#include "bench/median.h"

namespace flashback::bench {
namespace {

constexpr std::chrono::milliseconds kInterval{20};

}  // namespace

GpuLog::GpuLog(GpuSensors* sensors) : sensors_(sensors) {
  if (sensors) reader_ = std::thread([this] { read(); });
}

void GpuLog::read() {
  std::unique_lock lock(mutex_);
  do {
    GpuReading reading;
    if (sensors_->read(&reading).ok()) readings_.push_back(reading);
  } while (!stopped_signal_.wait_for(lock, kInterval, [this] { return stopped_; }));
}

std::vector<GpuReading> GpuLog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopped_signal_.notify_all();
  if (reader_.joinable()) reader_.join();
  return std::exchange(readings_, {});
}

GpuReading summary(const std::vector<GpuReading>& readings) {
  const auto median_of = [&](double GpuReading::*quantity) {
    std::vector<double> values;
    for (const GpuReading& reading : readings) values.push_back(reading.*quantity);
    return median(std::move(values));
  };
  GpuReading all{median_of(&GpuReading::watts), median_of(&GpuReading::sm_mhz),
                 median_of(&GpuReading::memory_mhz), median_of(&GpuReading::celsius), 0};
  for (const GpuReading& reading : readings) all.clock_reasons |= reading.clock_reasons;
  return all;
}

}  // namespace flashback::bench
