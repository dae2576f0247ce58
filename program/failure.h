// How a subcommand gives up: one sentence on stderr and an exit code, both carried to main() by an exception.
#pragma once

#include <stdexcept>
#include <string>

#include "device/status.h"

namespace flashback::program {

enum ExitCode {
  kRight = 0,
  kWrong = 1,     // it ran, and a gradient is beyond its limit
  kUsage = 2,     // an argument or a file breaks a rule, or nothing here solves the problem
  kInternal = 3,  // the device failed, or a defect of this program
};

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws a Failure unless `status` is ok: invalid and unsupported are the caller's, the rest is ours.
inline void require(const Status& status) {
  if (status.ok()) return;
  const bool usage = status.code() == Code::kInvalid || status.code() == Code::kUnsupported;
  throw Failure(usage ? kUsage : kInternal, status.sentence());
}

[[noreturn]] inline void refuse(const std::string& sentence) {
  throw Failure(kUsage, sentence);
}

}  // namespace flashback::program
