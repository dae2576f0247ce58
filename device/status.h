// What every fallible call of the host side returns: a code and one sentence for a person.
#pragma once

#include <string>
#include <utility>

namespace flashback {

enum class Code {
  kOk,
  kInvalid,      // an argument breaks a rule; the sentence names it, its value, the rule and what is accepted
  kUnsupported,  // a legal question that no kernel here answers yet
  kDevice,       // the device refused or failed (driver error, emulator fault)
  kInternal,     // a defect of this library
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string sentence) : code_(code), sentence_(std::move(sentence)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& sentence() const { return sentence_; }

 private:
  Code code_ = Code::kOk;
  std::string sentence_;
};

inline Status invalid(std::string sentence) {
  return {Code::kInvalid, std::move(sentence)};
}
inline Status unsupported(std::string sentence) {
  return {Code::kUnsupported, std::move(sentence)};
}
inline Status device_failure(std::string sentence) {
  return {Code::kDevice, std::move(sentence)};
}
inline Status internal_failure(std::string sentence) {
  return {Code::kInternal, std::move(sentence)};
}

}  // namespace flashback
