// How a time is taken. A power-capped GPU has no one speed: what a call takes depends on what ran before it.
// So there are two protocols, and in both every contender meets the same conditions.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bench/contender.h"
#include "bench/gpu_log.h"

namespace flashback::bench {

struct Protocol {
  std::string_view name;
  int rounds;
  double idle_ms;  // of rest before the warm-up
  // Before the timed calls, back to back: at least so many, and for so long.
  int warm_calls;
  double warm_ms;
  // Of each contender in a round, the same.
  int timed_calls;
  double timed_ms;
  // Whether contenders take turns call by call, or one has the GPU to itself until its round is over.
  bool turns;
};

// A short burst after rest: a step of training in which attention is a part. And a card that has been at its
// power cap for a while.
inline constexpr Protocol kShort = {"short", 2, 100, 3, 0, 15, 0, true};
inline constexpr Protocol kSustained = {"sustained", 2, 0, 3, 200, 12, 300, false};

struct Timing {
  std::vector<std::vector<double>> rounds;  // milliseconds of each timed call
  std::vector<GpuReading> readings;         // while they ran; with turns, those of all contenders

  std::vector<double> all() const;
  double median_ms() const;
};

// The buffer whose writing leaves nothing else in the L2 cache, and the two events around a call.
class Timer {
 public:
  Timer(Workbench& workbench, Stream stream, std::size_t flush_bytes);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Milliseconds of device time that the call takes, its L2 cache flushed before.
  double once(Contender& contender);
  void wait();

 private:
  Workbench& workbench_;
  const Stream stream_;
  const std::size_t flush_words_;
  Address flush_ = 0;
};

// A timing for each contender, in their order. They have begun their passes. `sensors` may be null.
std::vector<Timing> take_times(Timer& timer, const Protocol& protocol,
                               const std::vector<Contender*>& contenders, GpuSensors* sensors);

}  // namespace flashback::bench
