// What every fallible call of the host side returns: a code and one sentence for a person.
#pragma once

#include <memory>
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
  Status(Code code, std::string sentence)
      : code_(code), sentence_(std::make_shared<const std::string>(std::move(sentence))) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& sentence() const {
    static const std::string none;
    return sentence_ ? *sentence_ : none;
  }

 private:
  Code code_ = Code::kOk;
  std::shared_ptr<const std::string> sentence_;  // a call makes dozens that say nothing
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
