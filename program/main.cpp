// `flashback`: runs, checks, plans, lists and times the library's kernels. Exit codes: failure.h.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <new>

#include "flashback/flashback.h"
#include "program/failure.h"
#include "program/subcommand.h"

namespace flashback::program {
namespace {

constexpr const char* kExamples = R"(Examples:
  flashback run backward --seqlen-q 512 --seqlen-k 1024 --causal
  flashback plan backward --tmem aliased
  flashback list
  flashback trace backward --variants aliased/cta,split/warp --out both.svg
  flashback bench --suite emulator
  flashback emulate ./a_cuda_program

Exit codes: 0 right, 1 a result is wrong or a check finds something, 2 usage or not supported, 3 internal.)";

void complain(const std::string& sentence) {
  const bool ended = !sentence.empty() && (sentence.back() == '.' || sentence.back() == '\n');
  fmt::print(stderr, "flashback: {}{}\n", sentence, ended ? "" : ".");
}

// What is wrong with the command line. CLI11 does not name a word that should be a subcommand; we do.
std::string sentence_of(const CLI::App& flashback, const CLI::ParseError& error) {
  const CLI::App* app = &flashback;
  std::string words = "flashback";
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    words += " " + app->get_name();
  }
  std::string accepted;
  for (const CLI::App* subcommand : app->get_subcommands([](const CLI::App*) { return true; })) {
    accepted += (accepted.empty() ? "" : ", ") + subcommand->get_name();
  }
  if (accepted.empty()) return fmt::format("{}; {} --help tells what is accepted", error.what(), words);
  const std::vector<std::string> rest = app->remaining();
  return fmt::format("{} {}; it must be followed by one of {}", words,
                     rest.empty() ? "stands alone" : fmt::format("is followed by {}", rest.front()),
                     accepted);
}

ExitCode run_command(int argc, char** argv) {
  CLI::App flashback("Gradients of attention on NVIDIA Blackwell, on a GPU or on its emulator.", "flashback");
  flashback.set_version_flag(
      "--version", fmt::format("flashback {}.{}", FLASHBACK_VERSION_MAJOR, FLASHBACK_VERSION_MINOR));
  flashback.footer(kExamples);
  flashback.require_subcommand(1);
  Action chosen;
  add_run(flashback, &chosen);
  add_plan(flashback, &chosen);
  add_list(flashback, &chosen);
  add_trace(flashback, &chosen);
  add_bench(flashback, &chosen);
  add_emulate(flashback, &chosen);
  add_check(flashback, &chosen);
  try {
    flashback.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return ExitCode(flashback.exit(error));  // --help and --version
    refuse(sentence_of(flashback, error));
  }
  return chosen();
}

}  // namespace
}  // namespace flashback::program

int main(int argc, char** argv) {
  using namespace flashback::program;
  try {
    const ExitCode code = run_command(argc, argv);
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    complain("standard output cannot be written");
    return kInternal;
  } catch (const Failure& failure) {
    complain(failure.what());
    return failure.code();
  } catch (const std::bad_alloc&) {
    complain(
        "the problem needs more memory than this machine has; a shorter sequence or fewer heads need less");
    return kUsage;
  } catch (const std::exception& error) {
    complain(fmt::format("internal error: {}", error.what()));
    return kInternal;
  }
}
