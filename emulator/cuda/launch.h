// Kernel launches. A launch runs to its end before its call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/cuda/module.h"

namespace flashback::emulator::cuda {

struct LaunchRequest {
  Function* function;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};  // zeros: as the kernel was compiled, or of one CTA
  std::uint32_t shared_bytes = 0;
  void* stream = nullptr;
  bool cooperative = false;
  void* completion_event = nullptr;
};

// A launch attribute; runtime and driver number them and lay them out alike. `value` is its union of 64
// bytes. Those that cannot change a result are accepted and do nothing.
void apply_attribute(LaunchRequest* request, int id, const void* value);

// `parameters` holds the address of each of the kernel's parameters.
void launch(const LaunchRequest& request, void** parameters);
// `parameters` are the kernel's parameters as it finds them.
void launch(const LaunchRequest& request, std::span<const std::byte> parameters);

}  // namespace flashback::emulator::cuda
