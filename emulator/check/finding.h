// What the checker has to say.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace flashback::emulator::checking {

// An error is wrong on hardware; advice is what the PTX ISA does not promise although hardware does it.
enum class Severity : std::uint8_t { kError, kAdvice };

struct Finding {
  std::string rule;  // "race", "proxy", ...: the family
  Severity severity = Severity::kError;
  std::string kernel;
  std::string sentence;  // of the first time
  std::uint64_t count = 0;
};

std::string to_text(const Finding& finding);  // "error race (3 times): ..."
nlohmann::ordered_json to_json(const Finding& finding);

// In the order in which they were first made; the same one again only counts.
class Findings {
 public:
  void begin_launch(const std::string& kernel) { kernel_ = kernel; }
  // `key` says which findings of a rule in a kernel are the same; `sentence()` is asked once for each.
  template <class F>
  void add(const char* rule, Severity severity, const std::string& key, F&& sentence) {
    const auto [place, is_new] = places_.try_emplace(kernel_ + '\n' + rule + '\n' + key, all_.size());
    if (is_new) all_.push_back({rule, severity, kernel_, sentence(), 0});
    ++all_[place->second].count;
  }
  const std::vector<Finding>& all() const { return all_; }

 private:
  std::string kernel_;
  std::map<std::string, std::size_t> places_;
  std::vector<Finding> all_;
};

}  // namespace flashback::emulator::checking
