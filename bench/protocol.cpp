#include "bench/protocol.h"

#include <chrono>
#include <thread>

#include "bench/median.h"
#include "program/failure.h"

namespace flashback::bench {
namespace {

using program::require;

class Clock {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Contenders that share the GPU in a round, by their places.
using Group = std::vector<std::size_t>;

std::vector<Group> groups_of(const Protocol& protocol, std::size_t contenders, int round) {
  Group all;
  for (std::size_t i = 0; i < contenders; ++i) all.push_back((i + std::size_t(round)) % contenders);
  if (protocol.turns) return {all};
  std::vector<Group> alone;
  for (const std::size_t i : all) alone.push_back({i});
  return alone;
}

}  // namespace

std::vector<double> Timing::all() const {
  std::vector<double> times;
  for (const std::vector<double>& round : rounds) times.insert(times.end(), round.begin(), round.end());
  return times;
}

double Timing::median_ms() const {
  return median(all());
}

Timer::Timer(Workbench& workbench, Stream stream, std::size_t flush_bytes)
    : workbench_(workbench), stream_(stream), flush_words_(flush_bytes / 4) {
  require(workbench.allocate(flush_bytes, &flush_));
}

Timer::~Timer() {
  workbench_.release(flush_);
}

double Timer::once(Contender& contender) {
  // While the flush runs, the host enqueues the call: no gap between its kernels is the host's.
  require(workbench_.fill(flush_, 1, flush_words_, stream_));
  require(workbench_.mark(0, stream_));
  contender.enqueue();
  require(workbench_.mark(1, stream_));
  double milliseconds = 0;
  require(workbench_.elapsed(&milliseconds));
  return milliseconds;
}

void Timer::wait() {
  require(workbench_.wait(stream_));
}

std::vector<Timing> take_times(Timer& timer, const Protocol& protocol,
                               const std::vector<Contender*>& contenders, GpuSensors* sensors) {
  std::vector<Timing> timings(contenders.size());
  for (Timing& timing : timings) timing.rounds.resize(std::size_t(protocol.rounds));
  for (int round = 0; round < protocol.rounds; ++round) {
    for (const Group& group : groups_of(protocol, contenders.size(), round)) {
      timer.wait();
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(protocol.idle_ms));
      const Clock warming;
      for (int call = 0; call < protocol.warm_calls || warming.ms() < protocol.warm_ms; ++call) {
        for (const std::size_t i : group) contenders[i]->enqueue();
        timer.wait();
      }
      const Clock timing;
      GpuLog log(sensors);
      for (int call = 0; call < protocol.timed_calls || timing.ms() < protocol.timed_ms; ++call) {
        // Who begins changes from call to call, so that nobody always follows the same one.
        for (std::size_t turn = 0; turn < group.size(); ++turn) {
          const std::size_t i = group[(turn + std::size_t(call)) % group.size()];
          timings[i].rounds[std::size_t(round)].push_back(timer.once(*contenders[i]));
        }
      }
      const std::vector<GpuReading> readings = log.stop();
      for (const std::size_t i : group)
        timings[i].readings.insert(timings[i].readings.end(), readings.begin(), readings.end());
    }
  }
  return timings;
}

}  // namespace flashback::bench
