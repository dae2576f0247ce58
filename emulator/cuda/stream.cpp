#include "emulator/cuda/stream.h"

#include <algorithm>

namespace flashback::emulator::cuda {

Stream* Streams::create(unsigned flags, int priority) {
  require(flags <= 1);  // non-blocking or not
  return streams_.make(Stream{flags, std::clamp(priority, kGreatestPriority, kLeastPriority), next_id_++});
}

Stream& Streams::of(void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle) <= 2 ? default_ : streams_.of(handle);
}

void Streams::record(void* event, void* stream) {
  of(stream);
  events_.of(event).recorded = std::chrono::steady_clock::now();
}

float Streams::milliseconds(void* from, void* to) {
  const Event &begin = events_.of(from), &end = events_.of(to);
  const bool timed = ((begin.flags | end.flags) & kEventDisableTiming) == 0;
  require(timed && begin.recorded && end.recorded, Error::kInvalidHandle);
  return std::chrono::duration<float, std::milli>(*end.recorded - *begin.recorded).count();
}

}  // namespace flashback::emulator::cuda
