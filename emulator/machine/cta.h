// A CTA: shared memory, barriers, tensor memory, the asynchronous work it has issued, and its warps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/machine/address_space.h"
#include "emulator/machine/launch_state.h"
#include "emulator/machine/named_barriers.h"
#include "emulator/machine/reduction_order.h"
#include "emulator/machine/register_pool.h"
#include "emulator/machine/units/tensor_memory.h"
#include "emulator/machine/units/warp_products.h"
#include "emulator/machine/units/work_queue.h"
#include "emulator/machine/warp.h"

namespace flashback::emulator {

class Cluster;

class Cta {
 public:
  explicit Cta(Cluster& cluster) : work(*this), cluster_(cluster) {}
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  // ---- for bodies and units

  const LaunchState& launch() const { return *launch_; }
  Observer* observer() const { return launch_->observer; }  // null: nobody watches
  Dim3 index() const { return index_; }
  std::uint64_t number() const { return number_; }  // in start order
  Cluster& cluster() const { return cluster_; }
  std::uint32_t rank() const { return rank_; }  // in the cluster
  // Number of a warp in the cluster.
  std::uint32_t cluster_warp(int warp) const {
    return rank_ * launch_->warps() + static_cast<std::uint32_t>(warp);
  }
  bool exited() const { return live_warps_ == 0; }
  const std::vector<Warp>& warps() const { return warps_; }
  std::vector<Warp>& warps() { return warps_; }

  bool shared_holds(std::uint32_t address, std::size_t bytes) const {
    return address >= shared_begin_ && bytes <= shared_end_ - shared_begin_ && address <= shared_end_ - bytes;
  }
  std::uint32_t shared_begin() const { return shared_begin_; }
  std::uint32_t shared_end() const { return shared_end_; }
  // Unchecked; of whichever CTA of the cluster the address names.
  std::byte* shared(std::uint32_t address) { return window_ + address; }
  const std::byte* shared(std::uint32_t address) const { return window_ + address; }
  // Checked, for units. Throws Misuse that says what `what` wanted.
  std::byte* shared(std::uint32_t address, std::size_t bytes, const char* what);
  // The same for the shared memory of any CTA of the cluster that has not exited.
  bool cluster_holds(std::uint32_t address, std::size_t bytes) const;
  std::byte* cluster_shared(std::uint32_t address, std::size_t bytes, const char* what);

  // Whether all of it lies in one registered range. Remembers the range.
  bool global_holds(Address address, std::size_t bytes) {
    return last_range_.holds(address, bytes) || find_range(address, bytes);
  }
  // The same for what a tensor map may lie in: parameters, or global memory.
  bool constant_holds(Address address, std::size_t bytes);
  // To be called before global memory is read or written: the cluster's own reductions come first.
  void settle_reductions(Address address, std::size_t bytes) {
    if (log_->touches(address, bytes)) take_turn();
  }
  void reduce(Address address, std::span<const float> values);

  NamedBarriers barriers;
  RegisterPool register_pool;
  TensorMemory tensor_memory;
  WorkQueue work;
  std::vector<WarpgroupOrder> warpgroups;  // four warps each

  // " (entry e, CTA (0, 0, 0), warp 3, PTX line 123 `opcode`, file.cu:45)"
  std::string where(int warp, const Step& step) const;

  // ---- for the cluster

  void start(const LaunchState& launch, Dim3 index, std::uint32_t rank, std::uint64_t number,
             std::byte* window, ReductionLog* log);
  // Lets each warp run until it waits; the most that any of them did.
  template <bool kObserved>
  Warp::Progress run_warps();
  // Lets one random warp run a random number of instructions.
  template <bool kObserved>
  Warp::Progress run_any_warp();
  // After the last of its asynchronous work: what it must not leave behind.
  void check_end() const;
  // One sentence a warp, each on a line that starts with `prefix`: where it is and what it waits for.
  std::string describe_waits(const std::string& prefix) const;
  std::uint64_t executed() const;

 private:
  bool find_range(Address address, std::size_t bytes);
  void take_turn();
  bool warp_ran(Warp& warp);
  std::string describe(const Wait& wait) const;

  Cluster& cluster_;
  const LaunchState* launch_ = nullptr;
  Dim3 index_;
  std::uint32_t rank_ = 0;
  std::uint64_t number_ = 0;
  std::byte* window_ = nullptr;  // host memory of shared address 0
  std::uint32_t shared_begin_ = kSharedBase, shared_end_ = kSharedBase;
  std::vector<Warp> warps_;
  std::size_t live_warps_ = 0;
  GlobalMemory::Range last_range_;
  ReductionLog* log_ = nullptr;  // the cluster's
};

}  // namespace flashback::emulator
