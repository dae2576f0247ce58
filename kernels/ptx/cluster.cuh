// Between the CTAs of a cluster: who they are, each other's shared memory and barriers.
#pragma once

#include "kernels/ptx/mbarrier.cuh"

namespace flashback::ptx {

__device__ inline int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Every thread of the cluster arrives, and none goes on before all have: whole warps.
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The same object in the shared memory of CTA `rank`: an address of .shared::cluster.
template <typename T>
__device__ std::uint32_t shared_address_at(int rank, T& object) {
  std::uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(&object)), "r"(rank));
  return address;
}

// Arrivals at another CTA's barrier.
__device__ inline void arrive_at(int rank, Barrier& barrier, std::uint32_t arrivals = 1) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                   shared_address_at(rank, barrier)),
               "r"(arrivals)
               : "memory");
}

// Waits at a barrier of one's own where another CTA arrives or copies, and sees what that one did before in
// shared memory. The fence is for that alone, and a NOP: .acquire.cluster would empty the cache of global
// memory too.
__device__ inline void wait_for_cluster(Barrier& barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "fence.acquire.sync_restrict::shared::cluster.cluster;\n"
      "}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

__device__ inline void store_at(int rank, std::int32_t& to, std::int32_t value) {
  asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(shared_address_at(rank, to)), "r"(value) : "memory");
}

// From this CTA's shared memory to the same object's place in another's, where `barrier` counts the bytes.
template <typename T>
__device__ void send_bulk(int rank, T& to, const void* from, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address_at(rank, to)),
      "r"(shared_address(from)), "n"(sizeof(T)), "r"(shared_address_at(rank, barrier))
      : "memory");
}

}  // namespace flashback::ptx
