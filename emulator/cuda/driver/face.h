// The driver's face: how its functions answer.
#pragma once

#include <cuda.h>

#include <utility>

#include "emulator/cuda/process.h"

namespace flashback::emulator::cuda::driver {

// Contexts share the one device and all of its memory.
struct Context {
  unsigned flags = 0;
};

// The current context of this thread. Refuses when there is none.
Context& current_context();

// The driver's code where the runtime has one of its own.
CUresult result_of(Error error);

// Before cuInit no call but a few works.
template <class Call>
CUresult answer(Call&& call) {
  return result_of(attempt([&] {
    require(process().initialized, Error::kNotInitialized);
    call();
  }));
}

template <class Call>
CUresult answer_in_context(Call&& call) {
  return answer([&] {
    current_context();
    call();
  });
}

// Writes `value` to where the caller wants it. Refuses null.
template <class To, class Value>
void give(To* to, Value&& value) {
  require(to != nullptr);
  *to = To(std::forward<Value>(value));
}

inline void require_device(CUdevice device) {
  require(device == 0, Error::kInvalidDevice);
}

inline void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace flashback::emulator::cuda::driver
