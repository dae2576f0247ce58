// Memory pools. Memory goes back to the host when it is freed, so that a pool is no more than its attributes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "emulator/cuda/handles.h"

namespace flashback::emulator::cuda {

class Pool {
 public:
  // `value` is what CUDA's attribute `id` has: an int or 64 bits. Runtime and driver number attributes alike.
  // Refuse attributes that are not there, and setting what only tells.
  void set(int id, const void* value);
  void get(int id, void* value);

 private:
  std::mutex mutex_;
  std::map<int, std::uint64_t> set_;
};

class Pools {
 public:
  Pools() : default_(pools_.make()), current_(default_) {}
  Pool* create() { return pools_.make(); }
  void destroy(const void* handle);
  Pool& of(const void* handle) const { return pools_.of(handle); }
  Pool* default_pool() const { return default_; }
  Pool* current() const { return current_; }
  void make_current(const void* handle) { current_ = &of(handle); }

 private:
  Handles<Pool> pools_;
  Pool* default_;
  Pool* current_;
};

}  // namespace flashback::emulator::cuda
