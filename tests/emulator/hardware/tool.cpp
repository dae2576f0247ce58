// hardware_tool record ROOT [BEGIN...]  on a machine with an H200: runs every experiment, or those whose
// names
//                                       begin so, and rewrites their golden files in the repository at ROOT
// hardware_tool sweep ROOT              there: every word through every swept function
// hardware_tool pages ROOT              anywhere: rewrites docs/emulator/hardware.md and coverage.md from the
//                                       tables and golden files
// hardware_tool opcodes PTX...          the opcodes of these files that a Hopper GPU has
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>

#include "emulator/workbench.h"
#include "tests/emulator/hardware/full_sweep.h"
#include "tests/emulator/hardware/golden.h"
#include "tests/emulator/hardware/pages.h"

namespace flashback::emulator::testing {
namespace {

constexpr unsigned kMostSeconds = 10;  // of an experiment on the GPU

// "NVIDIA H200, driver 580.159.04, 2026-11-29"
const std::string& this_machine() {
  static const std::string machine = [] {
    std::string line;
    if (std::FILE* pipe =
            popen("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader --id=0", "r")) {
      std::array<char, 256> text{};
      if (std::fgets(text.data(), text.size(), pipe) != nullptr) line = text.data();
      pclose(pipe);
    }
    const std::size_t comma = line.find(", "), end = line.find('\n');
    if (comma == line.npos) return std::string();
    const std::time_t now = std::time(nullptr);
    return fmt::format("{}, driver {}, {:%Y-%m-%d}", line.substr(0, comma),
                       line.substr(comma + 2, end - comma - 2), fmt::gmtime(now));
  }();
  return machine;
}

std::unique_ptr<Workbench> open_hopper() {
  std::unique_ptr<Workbench> gpu;
  if (const Status status = open_cuda(0, &gpu); !status.ok()) {
    fmt::print(stderr, "hardware_tool: {}\n", status.sentence());
  } else if (gpu->arch() != Arch::kSm90 || this_machine().empty()) {
    fmt::print(
        stderr,
        "hardware_tool: CUDA device 0 must have compute capability 9.0, and nvidia-smi must name it\n");
  } else {
    return gpu;
  }
  return nullptr;
}

std::unique_ptr<Workbench> emulator(int threads) {
  MachineOptions options;
  options.arch = Arch::kSm90;
  options.threads = threads;
  return make_workbench(options);
}

// Every word through every swept function, on the GPU and on the emulator.
int sweep(const std::string& root) {
  const std::unique_ptr<Workbench> gpu = open_hopper();
  if (!gpu) return 1;
  std::vector<std::unique_ptr<Workbench>> emulators;
  std::vector<Workbench*> each;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    emulators.push_back(emulator(1));
    each.push_back(emulators.back().get());
  }
  std::vector<std::uint32_t> blocks(kSweepBlocks);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::filesystem::create_directories(golden_folder(root) + "/full");
  Status status;
  for (const std::string& function : swept_functions()) {
    const std::vector<std::uint64_t> right =
        sweep_digests({gpu.get(), gpu.get(), gpu.get(), gpu.get()}, function, blocks, &status);
    if (status.ok()) {
      std::ofstream(full_sweep_path(root, function)) << full_sweep_text(this_machine(), right);
      const std::vector<std::uint64_t> emulated = sweep_digests(each, function, blocks, &status);
      int different = 0;
      for (std::uint32_t block : blocks) different += right[block] != emulated[block];
      fmt::print("{}: the emulator differs in {} of {} blocks\n", function, different, kSweepBlocks);
    }
    if (!status.ok()) {
      fmt::print(stderr, "{}: {}\n", function, status.sentence());
      return 1;
    }
  }
  return 0;
}

// The results of all modules of the experiment, which must be one; empty after a sentence about a failure.
Results results_on(Workbench& gpu, const Experiment& experiment) {
  Results first;
  for (const std::string& module : experiment.modules) {
    Results results;
    if (const Status status = run(gpu, experiment, module, &results); !status.ok()) {
      fmt::print(stderr, "{}: {}\n", experiment.name, status.sentence());
      return {};
    }
    if (first.empty()) first = results;
    if (first != results) {
      fmt::print(stderr, "{}: its modules differ:\n{}", experiment.name,
                 difference(experiment, first, results));
      return {};
    }
  }
  return first;
}

// Of a recording, shared between the processes that do it.
struct Progress {
  std::size_t next = 0;  // the first experiment that nobody has begun
  int failures = 0, different = 0;
};

// Records from `progress->next` on, to the end or the first failure: a fault takes the context with it.
// False where there is no GPU.
bool record_some(const std::string& root, const std::vector<Recipe>& experiments, Progress* progress) {
  const std::unique_ptr<Workbench> gpu = open_hopper();
  if (!gpu) return false;
  const std::unique_ptr<Workbench> here = emulator(0);
  while (progress->next < experiments.size()) {
    const Experiment experiment = experiments[progress->next++].build();
    alarm(kMostSeconds);
    const Results results = results_on(*gpu, experiment);
    alarm(0);
    if (results.empty()) {
      ++progress->failures;
      break;
    }
    std::ofstream(golden_path(root, experiment.name)) << golden_text(this_machine(), experiment, results);
    Results emulated;
    const Status status = run(*here, experiment, experiment.modules[0], &emulated);
    const std::string wrong =
        status.ok() ? difference(experiment, results, emulated) : status.sentence() + "\n";
    progress->different += !wrong.empty();
    if (!wrong.empty()) fmt::print("{}: the emulator gives\n{}", experiment.name, wrong);
  }
  return true;
}

int record(const std::string& root, std::span<char*> begins) {
  std::vector<Recipe> experiments = all_experiments(root);
  std::erase_if(experiments, [&](const Recipe& e) {
    return !begins.empty() && std::none_of(begins.begin(), begins.end(),
                                           [&](const char* begin) { return e.name.starts_with(begin); });
  });
  std::filesystem::create_directories(golden_folder(root));
  void* shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* progress = new (shared) Progress;
  while (progress->next < experiments.size()) {
    const pid_t child = fork();
    if (child == 0) {
      const bool has_gpu = record_some(root, experiments, progress);
      std::fflush(stdout);
      _exit(has_gpu ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return 1;
    if (!WIFSIGNALED(status)) continue;
    fmt::print(stderr, "{}: ended by signal {}\n", experiments[progress->next - 1].name, WTERMSIG(status));
    ++progress->failures;
  }
  fmt::print("{}: {} failures; the emulator differs in {} experiments\n", this_machine(), progress->failures,
             progress->different);
  return progress->failures == 0 ? 0 : 1;
}

int write_pages(const std::string& root) {
  std::ofstream(root + "/docs/emulator/coverage.md") << coverage_page(root);
  std::ofstream(root + "/docs/emulator/hardware.md") << hardware_page(root);
  return 0;
}

int print_opcodes(std::span<char*> paths) {
  std::set<std::string> opcodes;
  for (const char* path : paths) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::set<std::string> of_file = opcodes_of(text.str());
    if (of_file.empty()) {
      fmt::print(stderr, "hardware_tool: {} is no PTX with instructions\n", path);
      return 1;
    }
    opcodes.merge(of_file);
  }
  for (const std::string& opcode : opcodes) {
    if (is_of_hopper(opcode)) fmt::print("{}\n", opcode);
  }
  return 0;
}

}  // namespace
}  // namespace flashback::emulator::testing

int main(int argc, char** argv) {
  using namespace flashback::emulator::testing;
  const std::string_view verb = argc >= 3 ? argv[1] : "";
  if (verb == "record") return record(argv[2], {argv + 3, static_cast<std::size_t>(argc - 3)});
  if (verb == "sweep") return sweep(argv[2]);
  if (verb == "pages") return write_pages(argv[2]);
  if (verb == "opcodes") return print_opcodes({argv + 2, static_cast<std::size_t>(argc - 2)});
  fmt::print(stderr,
             "usage: hardware_tool record ROOT [BEGIN...] | sweep ROOT | pages ROOT | opcodes PTX...\n");
  return 2;
}
