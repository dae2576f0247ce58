// CUDA's error codes. Runtime and driver number them alike, so that one enumeration serves both; their names
// differ and stand in error_table.inc.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace flashback::emulator::cuda {

enum class Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidConfiguration = 9,  // of the runtime; the driver says kInvalidValue
  kInvalidPitch = 12,
  kInvalidSymbol = 13,  // of the runtime; the driver says kNotFound
  kInvalidMemcpyDirection = 21,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kUnsupportedLimit = 215,
  kInvalidPtx = 218,
  kFileNotFound = 301,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kPeerAccessNotEnabled = 705,
  kAssertion = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kMisalignedAddress = 716,
  kLaunchFailure = 719,
  kCooperativeLaunchTooLarge = 720,
  kNotSupported = 801,
  kInvalidClusterSize = 912,
};

struct ErrorText {
  int code;
  const char* runtime_name;
  const char* driver_name;  // null: the driver has no such code
  const char* text;
};

// Null when CUDA knows no such code.
const ErrorText* error_text(int code);

// How a call gives up: the code it answers with and, where the code alone does not tell, a sentence for
// stderr.
class Refusal : public std::exception {
 public:
  explicit Refusal(Error error, std::string sentence = {}) : error_(error), sentence_(std::move(sentence)) {}
  Error error() const { return error_; }
  const std::string& sentence() const { return sentence_; }
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  Error error_;
  std::string sentence_;
};

[[noreturn]] inline void refuse(Error error, std::string sentence = {}) {
  throw Refusal(error, std::move(sentence));
}
inline void require(bool held, Error error = Error::kInvalidValue) {
  if (!held) refuse(error);
}

}  // namespace flashback::emulator::cuda
