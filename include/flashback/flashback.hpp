// A thin C++17 face of flashback.h: handles that close themselves, and failures as exceptions. Header only.
#ifndef FLASHBACK_FLASHBACK_HPP
#define FLASHBACK_FLASHBACK_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "flashback/flashback.h"

namespace flashback {
inline namespace v0 {  // names of the library's own code may be the same

// Carries the status; what() is the sentence.
class Error : public std::runtime_error {
 public:
  Error(flashback_status status, const char* sentence) : std::runtime_error(sentence), status_(status) {}
  flashback_status status() const noexcept { return status_; }

 private:
  flashback_status status_;
};

namespace detail {

// Calls a C function with a message behind its arguments, and throws what it says.
template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments) {
  flashback_message message;
  const flashback_status status = function(arguments..., &message);
  if (status != FLASHBACK_OK) throw Error(status, message.text);
}

}  // namespace detail

// An opened device; closed with its last owner. Moves, does not copy.
class Device {
 public:
  static Device cuda(int ordinal) {
    Device device;
    detail::call(flashback_device_cuda, ordinal, &device.handle_);
    return device;
  }
  // `arch` is "sm100" or "sm90"; `threads` 0 means one for each core.
  static Device emulator(const std::string& arch, int threads = 0) {
    Device device;
    detail::call(flashback_device_emulator, arch.c_str(), threads, &device.handle_);
    return device;
  }

  Device(Device&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Device& operator=(Device&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Device() { flashback_device_close(handle_); }

  flashback_device* handle() const noexcept { return handle_; }
  void wait(void* stream = nullptr) const { detail::call(flashback_wait, handle_, stream); }

 private:
  Device() = default;
  flashback_device* handle_ = nullptr;
};

// `size()` elements of device memory; the device outlives it. Moves, does not copy.
template <typename T>
class Buffer {
 public:
  Buffer(const Device& device, std::size_t size) : device_(device.handle()), size_(size) {
    void* memory = nullptr;
    detail::call(flashback_allocate, device_, size * sizeof(T), &memory);
    data_ = static_cast<T*>(memory);
  }
  // With the contents of `host`, anything that has data() and size().
  template <typename Host>
  static Buffer of(const Device& device, const Host& host) {
    Buffer buffer(device, host.size());
    buffer.upload(host);
    return buffer;
  }

  Buffer(Buffer&& other) noexcept
      : device_(other.device_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { flashback_release(device_, data_); }

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

  template <typename Host>
  void upload(const Host& host, void* stream = nullptr) {
    copyable(host);
    detail::call(flashback_upload, device_, static_cast<void*>(data_), static_cast<const void*>(host.data()),
                 bytes(), stream);
  }
  // The elements are there once the stream has been waited for.
  template <typename Host>
  void download(Host& host, void* stream = nullptr) const {
    copyable(host);
    detail::call(flashback_download, device_, static_cast<void*>(host.data()),
                 static_cast<const void*>(data_), bytes(), stream);
  }

 private:
  template <typename Host>
  void copyable(const Host& host) const {
    static_assert(sizeof(*host.data()) == sizeof(T), "elements of the host and of the buffer differ in size");
    if (host.size() == size_) return;
    throw Error(FLASHBACK_INVALID,
                ("the host has " + std::to_string(host.size()) + " elements; the buffer has " +
                 std::to_string(size_) + ", and the two must be equal")
                    .c_str());
  }

  flashback_device* device_;
  T* data_ = nullptr;
  std::size_t size_;
};

// Arguments with `size` filled in and everything else zero.
inline flashback_backward_arguments backward_arguments() {
  flashback_backward_arguments arguments{};
  arguments.size = sizeof arguments;
  return arguments;
}
inline flashback_forward_arguments forward_arguments() {
  flashback_forward_arguments arguments{};
  arguments.size = sizeof arguments;
  return arguments;
}

// Bounds of -1 are none.
inline flashback_window window(std::int64_t left, std::int64_t right) {
  return {1, left, right};
}

// A tensor packed as (batch, row, head, channel), or of packed sequences as (row, head, channel).
inline flashback_tensor packed(void* data, std::int64_t rows, std::int64_t heads, std::int64_t head_dim) {
  return {data, rows * heads * head_dim, heads * head_dim, head_dim};
}

// lse packed as (batch, head, row), or of packed sequences as (head, row).
inline flashback_lse packed_lse(float* data, std::int64_t heads, std::int64_t rows) {
  return {data, heads * rows, rows};
}

inline std::size_t backward_workspace(const Device& device, const flashback_backward_arguments& arguments) {
  std::size_t bytes = 0;
  detail::call(flashback_backward_workspace, device.handle(), &arguments, &bytes);
  return bytes;
}

// Throws what backward() would refuse; launches nothing.
inline void check_backward(const Device& device, const flashback_backward_arguments& arguments) {
  detail::call(flashback_backward_can_run, device.handle(), &arguments);
}

inline void backward(const Device& device, const flashback_backward_arguments& arguments) {
  detail::call(flashback_backward, device.handle(), &arguments);
}

inline std::size_t forward_workspace(const Device& device, const flashback_forward_arguments& arguments) {
  std::size_t bytes = 0;
  detail::call(flashback_forward_workspace, device.handle(), &arguments, &bytes);
  return bytes;
}

// Throws what forward() would refuse; launches nothing.
inline void check_forward(const Device& device, const flashback_forward_arguments& arguments) {
  detail::call(flashback_forward_can_run, device.handle(), &arguments);
}

inline void forward(const Device& device, const flashback_forward_arguments& arguments) {
  detail::call(flashback_forward, device.handle(), &arguments);
}

}  // namespace v0
}  // namespace flashback
#endif
