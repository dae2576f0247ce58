// The runtime's face: how its functions answer.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "emulator/cuda/process.h"

namespace flashback::emulator::cuda::runtime {

// What cudaGetLastError of this thread will say.
cudaError_t& last_error();

// Every call of the runtime makes the device's primary context.
template <class Call>
cudaError_t answer(Call&& call) {
  const auto error = static_cast<cudaError_t>(attempt([&] {
    process().initialized = process().primary_active = true;
    call();
  }));
  if (error != cudaSuccess) last_error() = error;
  return error;
}

// Writes `value` to where the caller wants it. Refuses null.
template <class To, class Value>
void give(To* to, Value&& value) {
  require(to != nullptr);
  *to = To(std::forward<Value>(value));
}

// A kernel by the host function that stands for it, or by its handle. Refuses others.
Function& function_of(const void* symbol);
// The memory of a variable by the host variable that stands for it. Refuses others.
GlobalMemory::Range variable_of(const void* symbol);

inline void require_device(int device) {
  require(device == 0, Error::kInvalidDevice);
}

}  // namespace flashback::emulator::cuda::runtime
