// Objects that a program knows by opaque pointers. A pointer that is none of them is refused, as CUDA does.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "emulator/cuda/error.h"

namespace flashback::emulator::cuda {

template <class T>
class Handles {
 public:
  T* add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  template <class... Arguments>
  T* make(Arguments&&... arguments) {
    return add(std::make_unique<T>(std::forward<Arguments>(arguments)...));
  }
  bool has(const void* handle) const {
    const std::lock_guard lock(mutex_);
    return objects_.contains(handle);
  }
  T& of(const void* handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) refuse(Error::kInvalidHandle);
    return *found->second;
  }
  void remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    require(objects_.erase(handle) == 1, Error::kInvalidHandle);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<T>> objects_;
};

}  // namespace flashback::emulator::cuda
