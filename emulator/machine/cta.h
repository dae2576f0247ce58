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

class Cta {
 public:
  Cta() : work(*this) {}
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  // ---- for bodies and units

  const LaunchState& launch() const { return *launch_; }
  Observer* observer() const { return launch_->observer; }  // null: nobody watches
  Dim3 index() const { return index_; }
  std::uint64_t number() const { return number_; }  // in start order
  const std::vector<Warp>& warps() const { return warps_; }
  std::vector<Warp>& warps() { return warps_; }

  bool shared_holds(std::uint32_t address, std::size_t bytes) const {
    return address >= kSharedBase && bytes <= shared_end_ - kSharedBase && address <= shared_end_ - bytes;
  }
  std::uint32_t shared_end() const { return shared_end_; }
  std::byte* shared(std::uint32_t address) { return shared_ + (address - kSharedBase); }  // unchecked
  // Checked, for units. Throws Misuse that says what `what` wanted.
  std::byte* shared(std::uint32_t address, std::size_t bytes, const char* what);

  // Whether all of it lies in one registered range. Remembers the range.
  bool global_holds(Address address, std::size_t bytes) {
    return last_range_.holds(address, bytes) || find_range(address, bytes);
  }
  // The same for what a tensor map may lie in: parameters, or global memory.
  bool constant_holds(Address address, std::size_t bytes);
  // To be called before global memory is read or written: this CTA's own reductions come first.
  void settle_reductions(Address address, std::size_t bytes) {
    if (log_.touches(address, bytes)) take_turn();
  }
  void reduce(Address address, std::span<const float> values);

  NamedBarriers barriers;
  RegisterPool register_pool;
  TensorMemory tensor_memory;
  WorkQueue work;
  std::vector<WarpgroupOrder> warpgroups;  // four warps each

  // " (entry e, CTA (0, 0, 0), warp 3, PTX line 123 `opcode`, file.cu:45)"
  std::string where(int warp, const Step& step) const;

  // ---- for the grid

  enum class Progress { kMoved, kStuck, kFinished };

  void start(const LaunchState& launch, Dim3 index, std::uint64_t number);
  // Lets each warp run until it waits; then, if none moved, lets one piece of asynchronous work take effect.
  Progress sweep();
  // No warp can go on: faults with one sentence a warp, where it is and what it waits for.
  [[noreturn]] void fault_stuck() const;
  // After the last sweep, and after a fault: hands over what is left of the log.
  void finish();
  std::uint64_t executed() const;

 private:
  bool find_range(Address address, std::size_t bytes);
  void take_turn();
  template <bool kObserved>
  Progress sweep_in_order();
  template <bool kObserved>
  Progress sweep_at_random();
  void run_out();
  bool warp_ran(Warp& warp);
  std::string describe(const Wait& wait) const;
  std::string describe_waits() const;

  const LaunchState* launch_ = nullptr;
  Dim3 index_;
  std::uint64_t number_ = 0;
  std::byte* shared_ = nullptr;
  std::uint32_t shared_end_ = kSharedBase;
  std::vector<std::byte> shared_memory_;
  std::vector<Warp> warps_;
  std::size_t live_warps_ = 0;
  GlobalMemory::Range last_range_;
  ReductionLog log_;
  std::uint32_t idle_sweeps_ = 0;
};

}  // namespace flashback::emulator
