#include "emulator/machine/machine.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/grid.h"
#include "emulator/program/decode.h"
#include "emulator/ptx/parser.h"

namespace flashback::emulator {
namespace {

std::span<const std::span<const Row>> families() {
  static const std::vector<std::span<const Row>> all = {
      integer_rows(), float_rows(),       half_rows(),
      extreme_rows(), approximate_rows(), comparison_rows(),
      convert_rows(), move_rows(),        memory_rows(),
      atomic_rows(),  control_rows(),     convergence_rows(),
      barrier_rows(), copy_rows(),        tensor_memory_rows(),
      matrix_rows(),  warpgroup_rows(),   matrix_transfer_rows(),
  };
  return all;
}

std::string text(Dim3 d) {
  return fmt::format("({}, {}, {})", d.x, d.y, d.z);
}

// What CUDA refuses at a launch.
Status check_launch(const LaunchState& launch, Dim3 cluster, std::size_t parameter_bytes) {
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
  if (cluster.x != 1 || cluster.y != 1 || cluster.z != 1) {
    return unsupported(
        fmt::format("the cluster of {} is {}; the emulator runs clusters of (1, 1, 1)", name, text(cluster)));
  }
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

// PTX text, decoded entry by entry at first use.
class LoadedModule {
 public:
  // Null and a sentence in `error` when the text is not PTX.
  static std::unique_ptr<LoadedModule> parse(std::string_view ptx, std::string* error) {
    ptx::ParseResult parsed = ptx::parse(ptx);
    *error = parsed.error;
    if (parsed.module == nullptr) return nullptr;
    auto module = std::make_unique<LoadedModule>();
    module->syntax_ = std::move(parsed.module);
    return module;
  }

  bool is_of(std::string_view ptx) const { return syntax_->text == ptx; }

  const Program* program(const std::string& entry, std::string* error) {
    std::unique_ptr<Program>& program = programs_[entry];
    if (program == nullptr) {
      DecodeResult decoded = decode(*syntax_, entry, families());
      *error = decoded.error;
      program = std::move(decoded.program);
    }
    return program.get();
  }

 private:
  std::unique_ptr<ptx::Module> syntax_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace

struct Machine::State {
  MachineOptions options;
  std::mutex mutex;
  std::map<const char*, std::unique_ptr<LoadedModule>> modules;  // by where their text lies
  CtaPool ctas;
  Statistics statistics;

  Status find(std::string_view ptx, const std::string& entry, const Program** program) {
    std::unique_ptr<LoadedModule>& module = modules[ptx.data()];
    std::string error;
    if (module == nullptr || !module->is_of(ptx)) {
      module = LoadedModule::parse(ptx, &error);
      if (module == nullptr) return invalid(error);
    }
    *program = module->program(entry, &error);
    return *program == nullptr ? unsupported(error) : Status{};
  }
};

Machine::Machine(const MachineOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Machine::~Machine() = default;

Status Machine::launch(std::string_view ptx, const Launch& launch, const GlobalMemory& memory) {
  const std::lock_guard lock(state_->mutex);
  const MachineOptions& options = state_->options;
  LaunchState state;
  if (Status found = state_->find(ptx, launch.entry, &state.program); !found.ok()) return found;
  state.grid = launch.grid;
  state.block = launch.block;
  state.dynamic_shared_bytes = launch.shared_bytes;
  state.memory = &memory;
  state.schedule = options.schedule;
  state.observer = options.observer;
  state.multiprocessors = usual_multiprocessors(options.arch);
  if (Status checked = check_launch(state, launch.cluster, launch.parameters.size()); !checked.ok())
    return checked;
  const AlignedBytes parameters(launch.parameters);
  state.parameters = parameters.data();

  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  int threads = options.threads > 0 ? options.threads : std::max(1, cores);
  const ObservedLaunch observed(options.observer, *state.program);
  if (options.observer != nullptr) threads = 1;
  try {
    const GridTotals totals = run_grid(state, threads, state_->ctas);
    state_->statistics.warp_instructions += totals.warp_instructions;
    state_->statistics.matrix_instructions += totals.matrix_instructions;
    state_->statistics.ctas += totals.ctas;
  } catch (const Fault& fault) {
    return device_failure(fault.what());
  } catch (const std::bad_alloc&) {
    return internal_failure(fmt::format("out of host memory while running {}", launch.entry));
  }
  return {};
}

Statistics Machine::statistics() const {
  const std::lock_guard lock(state_->mutex);
  return state_->statistics;
}

}  // namespace flashback::emulator
