#include "emulator/cuda/process.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "emulator/cuda/environment.h"
#include "emulator/cuda/watch.h"

namespace flashback::emulator::cuda {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

template <class Number>
Number number(const char* name) {
  const std::string_view text = variable(name);
  Number value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0)) {
    refuse(Error::kNotInitialized, fmt::format("{} is {}; it must be a whole number", name, text));
  }
  return value;
}

const Gpu& chosen_gpu() {
  const std::string_view key = variable(kGpuVariable);
  const Gpu* gpu = find_gpu(key.empty() ? "b200" : key);
  if (gpu == nullptr) {
    refuse(Error::kNotInitialized, fmt::format("{} is {}; b200 and h200 are accepted", kGpuVariable, key));
  }
  return *gpu;
}

Completion chosen_completion() {
  const std::string_view word = variable(kScheduleVariable);
  if (word.empty() || word == "eager") return Completion::kEager;
  if (word == "lazy") return Completion::kLazy;
  if (word == "random") return Completion::kRandom;
  refuse(Error::kNotInitialized,
         fmt::format("{} is {}; eager, lazy and random are accepted", kScheduleVariable, word));
}

MachineOptions chosen_options(const Gpu& gpu) {
  MachineOptions options;
  options.arch = gpu.arch;
  options.threads = number<int>(kThreadsVariable);
  options.schedule.completion = chosen_completion();
  options.schedule.seed = number<std::uint64_t>(kSeedVariable);
  options.print = [](std::string_view text) { print(text); };
  options.observer = chosen_observer();
  return options;
}

}  // namespace

Process::Process() : gpu(chosen_gpu()), machine(chosen_options(gpu)), memory(gpu.memory_bytes) {}

Process& process() {
  static Process* process = new Process;
  return *process;
}

void lose_context(Error error, const std::string& sentence) {
  process().lost = error;
  refuse(error, sentence);
}

}  // namespace flashback::emulator::cuda
