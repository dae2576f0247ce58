// Streams and events. Every operation is done when its call returns, so that a stream has no state but what
// it was made with, and an event is a moment of the host's clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "emulator/cuda/handles.h"

namespace flashback::emulator::cuda {

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
};

struct Event {
  unsigned flags = 0;
  std::optional<std::chrono::steady_clock::time_point> recorded = {};
};

inline constexpr unsigned kEventDisableTiming = 2;  // in both faces
inline constexpr int kLeastPriority = 0, kGreatestPriority = -5;

class Streams {
 public:
  Stream* create(unsigned flags, int priority);
  void destroy(void* handle) { streams_.remove(handle); }
  // The handle's stream; that of null, of the legacy (1) and of the thread's default stream (2) is always
  // there.
  Stream& of(void* handle);

  Event* create_event(unsigned flags) { return events_.make(Event{flags}); }
  void destroy_event(void* handle) { events_.remove(handle); }
  Event& event(void* handle) { return events_.of(handle); }
  void record(void* event, void* stream);
  float milliseconds(void* from, void* to);

 private:
  Handles<Stream> streams_;
  Handles<Event> events_;
  Stream default_;
  std::atomic<std::uint64_t> next_id_{1};
};

}  // namespace flashback::emulator::cuda
