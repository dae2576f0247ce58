#include "emulator/cuda/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include "emulator/cuda/caller.h"
#include "emulator/cuda/error.h"

namespace flashback::emulator::cuda {
namespace {

void write(const std::string& sentence) {
  std::fflush(stdout);  // what the program said before stands before
  fmt::print(stderr, "flashback emulate: {}{}\n", sentence, sentence.ends_with('.') ? "" : ".");
}

class Failures {
 public:
  ~Failures() {
    if (written_.empty()) return;
    write(fmt::format("{} failure{} in this program's CUDA calls; the first: {}", written_.size(),
                      written_.size() == 1 ? "" : "s", first_));
  }
  void add(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    if (!written_.insert(sentence).second) return;
    const std::string place = place_of_caller();
    const std::string placed = place.empty() ? sentence : fmt::format("{} (called at {})", sentence, place);
    if (first_.empty()) first_ = placed;
    write(placed);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> written_;
  std::string first_;
};

}  // namespace

void report_failure(const std::string& sentence) {
  static Failures failures;
  failures.add(sentence);
}

void report_findings(const std::vector<checking::Finding>& findings) {
  constexpr std::size_t kMostOfOne = 3;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;  // by kernel and rule
  for (const checking::Finding& finding : findings) {
    if (++seen[{finding.kernel, finding.rule}] <= kMostOfOne) write(checking::to_text(finding));
  }
  for (const auto& [of, count] : seen) {
    if (count > kMostOfOne)
      write(fmt::format("{} more of rule {} in {}", count - kMostOfOne, of.second, of.first));
  }
  write(findings.empty() ? std::string("nothing found") : fmt::format("{} found", findings.size()));
}

void end_program(int code) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace flashback::emulator::cuda

int flashback_cuda_not_provided(const char* function) {
  using namespace flashback::emulator::cuda;
  report_failure(fmt::format("{} is not provided", function));
  return static_cast<int>(Error::kNotSupported);
}
