// What a pass writes, by name, and what is known of each.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/contender.h"

namespace flashback::bench {

// A 16-bit tensor that a pass writes.
struct Output {
  std::string_view name;  // out, or dq, dk, dv
  Tensor tensor;
  std::int64_t rows, heads;
};
std::vector<Output> outputs(const Pass& pass);

// Something of each, in their order; forward of lse as well.
template <typename Value>
class OfOutputs {
 public:
  void add(std::string_view name, const Value& value) { values_.emplace_back(name, value); }
  const Value& of(std::string_view name) const {
    for (const auto& [known, value] : values_) {
      if (known == name) return value;
    }
    throw std::out_of_range("the pass writes no " + std::string(name));
  }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string_view, Value>> values_;
};

}  // namespace flashback::bench
