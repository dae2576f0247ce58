// Tiles of a four-dimensional tensor (d, row, head, batch) between global and shared memory, by tensor map.
#pragma once

#include "kernels/ptx/mbarrier.cuh"

namespace flashback::ptx {

struct Coordinates {
  int d, row, head, batch;
};

__device__ inline void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// The whole box, with zeros where it leaves the tensor; its bytes count on `barrier`.
__device__ inline void load_tensor(void* to, const void* map, Coordinates at, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(to)),
      "l"(map), "r"(at.d), "r"(at.row), "r"(at.head), "r"(at.batch), "r"(shared_address(&barrier))
      : "memory");
}

// What of the box lies in the tensor; part of the thread's current bulk group.
__device__ inline void store_tensor(const void* map, Coordinates at, const void* from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map),
      "r"(at.d), "r"(at.row), "r"(at.head), "r"(at.batch), "r"(shared_address(from))
      : "memory");
}

// The same with a fifth dimension.
struct Coordinates5 {
  int d, row, head, batch, shift;
};

__device__ inline void load_tensor(void* to, const void* map, Coordinates5 at, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(shared_address(to)),
      "l"(map), "r"(at.d), "r"(at.row), "r"(at.head), "r"(at.batch), "r"(at.shift),
      "r"(shared_address(&barrier))
      : "memory");
}

__device__ inline void store_tensor(const void* map, Coordinates5 at, std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];" ::"l"(map),
      "r"(at.d), "r"(at.row), "r"(at.head), "r"(at.batch), "r"(at.shift), "r"(from)
      : "memory");
}

}  // namespace flashback::ptx
