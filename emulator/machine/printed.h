// What the CTAs of a launch print, in the order in which they start, whatever host threads run them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace flashback::emulator {

class Printed {
 public:
  void append(std::uint64_t cta, std::string_view text) {
    const std::lock_guard lock(mutex_);
    by_cta_[cta] += text;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const auto& [cta, text] : by_cta_) all += text;
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::string> by_cta_;
};

}  // namespace flashback::emulator
