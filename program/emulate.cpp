// `flashback emulate`: runs a CUDA program on the emulator, by putting our libraries before CUDA's.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "emulator/cuda/environment.h"
#include "program/arguments.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = R"(Examples:
  nvcc -cudart shared -gencode arch=compute_100a,code=compute_100a --no-compress program.cu -o program
  flashback emulate ./program
  flashback emulate --gpu h200 --schedule random --seed 7 ./program --its-own-option

  flashback emulate --check ./program                        is its synchronisation right?

The exit code is the program's; with --check, 1 where that would be 0 and something was found.)";

struct EmulateOptions {
  std::string gpu = "b200", schedule = "eager", seed = "0", threads = "0";
  bool check = false, strict = false;
  std::optional<std::string> json;
  std::vector<std::string> program;  // and its arguments
};

void require_word(const std::string& argument, const std::string& text,
                  const std::vector<std::string_view>& accepted) {
  if (std::find(accepted.begin(), accepted.end(), text) == accepted.end())
    refuse_word(argument, text, accepted);
}

void check(const EmulateOptions& options) {
  require_word("--gpu", options.gpu, {"b200", "h200"});
  require_word("--schedule", options.schedule, {"eager", "lazy", "random"});
  parse_whole("--seed", options.seed, 0, std::numeric_limits<std::int64_t>::max());
  parse_whole("--threads", options.threads, 0, 1024);
  if (options.strict && !options.check)
    refuse("--strict is given without --check, whose findings it adds to");
  if (options.json && !options.check) refuse("--json is given without --check, whose findings go there");
  if (options.program.empty()) refuse("flashback emulate names no program to run");
}

// Where libcudart.so.13 and libcuda.so.1 lie: beside the command as built, or where they are installed.
fs::path library_folder() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {here / "cuda", here.parent_path() / FLASHBACK_CUDA_INSTALL_FOLDER}) {
    if (fs::exists(folder / "libcudart.so.13")) return folder;
  }
  throw Failure(kInternal, fmt::format("libcudart.so.13 of the emulator lies neither in {} nor in {}",
                                       (here / "cuda").string(),
                                       (here.parent_path() / FLASHBACK_CUDA_INSTALL_FOLDER).string()));
}

void set_environment(const EmulateOptions& options) {
  namespace cuda = flashback::emulator::cuda;
  setenv(cuda::kGpuVariable, options.gpu.c_str(), 1);
  setenv(cuda::kScheduleVariable, options.schedule.c_str(), 1);
  setenv(cuda::kSeedVariable, options.seed.c_str(), 1);
  setenv(cuda::kThreadsVariable, options.threads.c_str(), 1);
  if (options.check) {
    setenv(cuda::kCheckVariable, options.strict ? "strict" : "errors", 1);
    if (options.json) setenv(cuda::kFindingsVariable, options.json->c_str(), 1);
  }
  const char* given = std::getenv("LD_LIBRARY_PATH");
  const std::string others = given == nullptr || *given == '\0' ? "" : std::string(":") + given;
  setenv("LD_LIBRARY_PATH", (library_folder().string() + others).c_str(), 1);
}

// The program takes the place of this process.
[[noreturn]] void become(const std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (const std::string& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  refuse(fmt::format("{} cannot be run: {}", program.front(), std::strerror(errno)));
}

ExitCode emulate(const EmulateOptions& options) {
  check(options);
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    refuse(
        "this processor lacks AVX2, FMA or F16C; the emulator needs an x86-64-v3 processor (Haswell, Zen or "
        "later)");
  }
  set_environment(options);
  become(options.program);
}

}  // namespace

void add_emulate(CLI::App& flashback, Action* chosen) {
  CLI::App* emulate =
      flashback.add_subcommand("emulate", "Runs a CUDA program on an emulated GPU, source unchanged");
  emulate->footer(kExamples);
  emulate->prefix_command();  // from the program's name on, all is the program's
  const auto options = std::make_shared<EmulateOptions>();
  emulate->add_option("--gpu", options->gpu, "The GPU that the program finds: b200, h200")
      ->capture_default_str();
  emulate
      ->add_option("--schedule", options->schedule,
                   "When asynchronous work takes effect: eager, lazy, random")
      ->capture_default_str();
  emulate->add_option("--seed", options->seed, "Of the random schedule")->capture_default_str();
  emulate->add_option("--threads", options->threads, "Host threads; 0: one for each core")
      ->capture_default_str();
  emulate->add_flag("--check", options->check,
                    "Looks for missing synchronisation; findings on stderr when the program ends");
  emulate->add_flag("--strict", options->strict,
                    "With --check: advice where the PTX ISA promises less than hardware does");
  emulate->add_option("--json", options->json, "With --check: the file that findings go to")
      ->type_name("FILE");
  emulate->callback([=] {
    options->program = emulate->remaining();
    *chosen = [=] { return program::emulate(*options); };
  });
}

}  // namespace flashback::program
