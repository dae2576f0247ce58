// A set of small numbers as bits, for the analyses.
#pragma once

#include <cstdint>
#include <vector>

namespace flashback::emulator {

class Bits {
 public:
  explicit Bits(std::size_t size = 0) : words_((size + 63) / 64) {}

  bool test(std::size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  void clear() { words_.assign(words_.size(), 0); }
  bool none() const {
    for (std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  // Adds the other's members; whether there were new ones.
  bool unite(const Bits& other) {
    std::uint64_t fresh = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      fresh |= other.words_[i] & ~words_[i];
      words_[i] |= other.words_[i];
    }
    return fresh != 0;
  }
  template <class F>
  void for_each(F&& visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) visit(64 * i + __builtin_ctzll(rest));
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace flashback::emulator
