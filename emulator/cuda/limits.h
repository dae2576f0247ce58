// Limits of a context. None bears on the machine: they are remembered, because programs read back what they
// have set.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace flashback::emulator::cuda {

class Limits {
 public:
  // Runtime and driver number limits alike. Both refuse what is none.
  std::size_t get(int id) const;
  void set(int id, std::size_t value);

 private:
  mutable std::mutex mutex_;
  std::map<int, std::size_t> set_;
};

}  // namespace flashback::emulator::cuda
