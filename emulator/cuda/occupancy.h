// How much of a GPU a launch fills.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/cuda/module.h"

namespace flashback::emulator::cuda {

// CTAs of `threads` threads that a multiprocessor holds at once; 0 when it holds none.
int resident_ctas(Function* function, std::uint32_t threads, std::size_t shared_bytes);

// Clusters that the GPU holds at once. GPUs hold fewer where their groups of multiprocessors are no multiple
// of the cluster; that is not modelled.
int resident_clusters(Function* function, std::uint32_t threads, std::size_t shared_bytes,
                      std::uint32_t ctas);

// CTAs of the largest cluster that the kernel may be launched in.
int largest_cluster(Function* function);

// Dynamic shared memory of each when a multiprocessor shall hold `ctas` of them.
std::size_t available_shared_bytes(Function* function, std::uint32_t threads, int ctas);

}  // namespace flashback::emulator::cuda
