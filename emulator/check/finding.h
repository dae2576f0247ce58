// What the checker has to say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace flashback::emulator::checking {

// An error is wrong on hardware; advice is what the PTX ISA does not promise although hardware does it.
enum class Severity : std::uint8_t { kError, kAdvice };

struct Finding {
  std::string rule;  // "race", "proxy", ...: the family
  Severity severity = Severity::kError;
  std::string sentence;  // of the first time
  std::uint64_t count = 0;
};

// In the order in which they were first made; the same one again only counts.
class Findings {
 public:
  // `key` says which findings of a rule are the same; `sentence()` is asked once for each.
  template <class F>
  void add(const char* rule, Severity severity, const std::string& key, F&& sentence) {
    const auto [place, is_new] = places_.try_emplace(std::string(rule) + '\n' + key, all_.size());
    if (is_new) all_.push_back({rule, severity, sentence(), 0});
    ++all_[place->second].count;
  }
  const std::vector<Finding>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<Finding> all_;
};

}  // namespace flashback::emulator::checking
