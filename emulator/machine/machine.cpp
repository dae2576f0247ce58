#include "emulator/machine/machine.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/grid.h"
#include "emulator/machine/loaded_module.h"

namespace flashback::emulator {
namespace {

std::string text(Dim3 d) {
  return fmt::format("({}, {}, {})", d.x, d.y, d.z);
}

// A launch that names no cluster gets the one that the entry is compiled for.
Dim3 cluster_of(const Launch& launch, const Program& program) {
  const bool named = launch.cluster.x != 1 || launch.cluster.y != 1 || launch.cluster.z != 1;
  if (named || !program.requires_cluster()) return launch.cluster;
  return {program.required_cluster[0], program.required_cluster[1], program.required_cluster[2]};
}

Status check_cluster(const LaunchState& launch) {
  const Program& program = *launch.program;
  const Dim3 grid = launch.grid, cluster = launch.cluster;
  const std::uint64_t size = std::uint64_t{cluster.x} * cluster.y * cluster.z;
  if (size == 0 || size > kMostRanks) {
    return invalid(fmt::format("the cluster of {} is {}; it must have 1 to {} CTAs", program.name,
                               text(cluster), kMostRanks));
  }
  const std::uint32_t* required = program.required_cluster;
  if (program.requires_cluster() &&
      (cluster.x != required[0] || cluster.y != required[1] || cluster.z != required[2])) {
    return invalid(fmt::format("the cluster of {} is {}; the entry is compiled for ({}, {}, {})",
                               program.name, text(cluster), required[0], required[1], required[2]));
  }
  if (program.max_cluster != 0 && size > program.max_cluster) {
    return invalid(fmt::format("the cluster of {} is {}; the entry is compiled for {} CTAs at most",
                               program.name, text(cluster), program.max_cluster));
  }
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return invalid(
        fmt::format("the grid of {} is {}, its cluster {}; each extent must be a multiple of the "
                    "cluster's",
                    program.name, text(grid), text(cluster)));
  }
  return {};
}

// What CUDA refuses at a launch.
Status check_launch(const LaunchState& launch, std::size_t parameter_bytes) {
  const Program& program = *launch.program;
  const std::string& name = program.name;
  const Dim3 grid = launch.grid, block = launch.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return invalid(
        fmt::format("the grid of {} is {}; each extent must be at least 1, x at most 2147483647, y and z at "
                    "most 65535",
                    name, text(grid)));
  }
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64) {
    return invalid(
        fmt::format("the block of {} is {}; it must have 1 to 1024 threads and a z extent of at most 64",
                    name, text(block)));
  }
  if (program.max_threads != 0 && threads > program.max_threads) {
    return invalid(fmt::format("the block of {} has {} threads; the entry is compiled for at most {}", name,
                               threads, program.max_threads));
  }
  if (Status checked = check_cluster(launch); !checked.ok()) return checked;
  const std::uint64_t shared = std::uint64_t{launch.dynamic_shared_offset()} + launch.dynamic_shared_bytes;
  if (shared > kSharedLimit) {
    return invalid(
        fmt::format("{} asks for {} bytes of shared memory ({} of them dynamic); a CTA has at most {}", name,
                    shared, launch.dynamic_shared_bytes, kSharedLimit));
  }
  if (parameter_bytes != program.parameter_bytes) {
    return invalid(fmt::format("{} takes {} bytes of parameters, but {} were given", name,
                               program.parameter_bytes, parameter_bytes));
  }
  return {};
}

// For all CTAs at once, where they ask for it.
Status check_room(const LaunchState& launch, bool together) {
  const std::uint64_t ctas = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z,
                      room = resident_clusters(launch) * launch.cluster_size();
  if (!together || ctas <= room) return {};
  return invalid(fmt::format("the {} CTAs of {} are to run at once; {} multiprocessors have room for {}",
                             ctas, launch.program->name, launch.multiprocessors, room));
}

// A module's own variables are global memory, and so is what the caller has allocated.
class MemoryOfLaunch final : public GlobalMemory {
 public:
  MemoryOfLaunch(const LoadedModule& module, const GlobalMemory& allocated)
      : module_(module), allocated_(allocated) {}
  Range range_of(Address address) const override {
    const Range variable = module_.holder(address);
    return variable.bytes() != 0 ? variable : allocated_.range_of(address);
  }

 private:
  const LoadedModule& module_;
  const GlobalMemory& allocated_;
};

// A copy of the parameters that tensor maps in them find aligned.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::span<const std::byte> bytes) : memory_(bytes.size() + kAlignment) {
    std::memcpy(memory_.data() + shift(), bytes.data(), bytes.size());
  }
  const std::byte* data() const { return memory_.data() + shift(); }

 private:
  static constexpr std::size_t kAlignment = 128;
  std::size_t shift() const {
    return (kAlignment - reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlignment) % kAlignment;
  }
  std::vector<std::byte> memory_;
};

// The span of a launch that somebody watches.
class ObservedLaunch {
 public:
  ObservedLaunch(Observer* observer, const Program& program) : observer_(observer) {
    if (observer_ != nullptr) observer_->launch_began(program);
  }
  ObservedLaunch(const ObservedLaunch&) = delete;
  ObservedLaunch& operator=(const ObservedLaunch&) = delete;
  ~ObservedLaunch() {
    if (observer_ != nullptr) observer_->launch_ended();
  }

 private:
  Observer* observer_;
};

}  // namespace

struct Machine::State {
  MachineOptions options;
  std::mutex mutex;
  ClusterPool clusters;
  Statistics statistics;
  FaultKind fault_kind = FaultKind::kOther;
};

Machine::Machine(const MachineOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Machine::~Machine() = default;

Status Machine::launch(LoadedModule& module, const Launch& launch, const GlobalMemory& memory) {
  const std::lock_guard lock(state_->mutex);
  const MachineOptions& options = state_->options;
  LaunchState state;
  if (Status found = module.program(launch.entry, &state.program); !found.ok()) return found;
  state.grid = launch.grid;
  state.cluster = cluster_of(launch, *state.program);
  state.block = launch.block;
  state.dynamic_shared_bytes = launch.shared_bytes;
  const MemoryOfLaunch memory_of_launch(module, memory);
  state.memory = &memory_of_launch;
  state.schedule = options.schedule;
  state.observer = options.observer;
  state.multiprocessors = usual_multiprocessors(options.arch);
  if (Status checked = check_launch(state, launch.parameters.size()); !checked.ok()) return checked;
  if (Status checked = check_room(state, launch.together); !checked.ok()) return checked;
  const AlignedBytes parameters(launch.parameters);
  state.parameters = parameters.data();
  Printed printed;
  state.printed = &printed;

  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  int threads = options.threads > 0 ? options.threads : std::max(1, cores);
  const ObservedLaunch observed(options.observer, *state.program);
  if (options.observer != nullptr) threads = 1;
  Status status;
  try {
    const GridTotals totals = run_grid(state, threads, state_->clusters);
    state_->statistics.warp_instructions += totals.warp_instructions;
    state_->statistics.matrix_instructions += totals.matrix_instructions;
    state_->statistics.ctas += totals.ctas;
  } catch (const Fault& fault) {
    status = device_failure(fault.what());
    state_->fault_kind = fault.kind();
  } catch (const std::bad_alloc&) {
    status = internal_failure(fmt::format("out of host memory while running {}", launch.entry));
  }
  if (const std::string text = printed.text(); options.print && !text.empty()) options.print(text);
  return status;
}

FaultKind Machine::fault_kind() const {
  const std::lock_guard lock(state_->mutex);
  return state_->fault_kind;
}

Statistics Machine::statistics() const {
  const std::lock_guard lock(state_->mutex);
  return state_->statistics;
}

}  // namespace flashback::emulator
