// Device memory of tests, with everything around what is given poisoned: gaps between rows and margins around
// tensors hold 0xff, a NaN in bf16 and fp32.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "flashback/flashback.h"

namespace flashback::test {

// Where the elements of a tensor lie in its memory.
enum class Layout {
  kPacked,     // (batch, row, head, channel)
  kHeadMajor,  // (batch, head, row, channel)
  kGaps,       // packed, with room left after channels, heads and rows, different for every tensor
};

inline void check(flashback_status status, const flashback_message& message) {
  ASSERT_EQ(status, FLASHBACK_OK) << message.text;
}

inline flashback_device* open_emulator(Arch arch, int threads = 0) {
  flashback_device* opened = nullptr;
  flashback_message message;
  check(flashback_device_emulator(std::string(name(arch)).c_str(), threads, &opened, &message), message);
  return opened;
}

// Device memory that starts as 0xff, with margins on both sides that nothing may write.
class Memory {
 public:
  Memory(flashback_device* device, std::size_t bytes) : device_(device), image_(bytes + 2 * kMargin, 0xff) {
    check(flashback_allocate(device_, image_.size(), &base_, &message_), message_);
  }
  ~Memory() { flashback_release(device_, base_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return static_cast<std::byte*>(base_) + kMargin; }
  std::uint8_t* host() { return image_.data() + kMargin; }
  void upload() {
    check(flashback_upload(device_, base_, image_.data(), image_.size(), nullptr, &message_), message_);
  }
  void download() {
    check(flashback_download(device_, image_.data(), base_, image_.size(), nullptr, &message_), message_);
  }
  void expect_margins_untouched(const char* what) const {
    const auto untouched = [](std::uint8_t byte) { return byte == 0xff; };
    EXPECT_TRUE(std::all_of(image_.begin(), image_.begin() + kMargin, untouched)) << "bytes before " << what;
    EXPECT_TRUE(std::all_of(image_.end() - kMargin, image_.end(), untouched)) << "bytes after " << what;
  }

 private:
  static constexpr std::size_t kMargin = 1024;
  flashback_device* device_;
  flashback_message message_;
  std::vector<std::uint8_t> image_;
  void* base_ = nullptr;
};

// A tensor on the device, its elements spread over its memory as the layout says.
class DeviceTensor {
 public:
  DeviceTensor(flashback_device* device, Layout layout, int which, std::int64_t batch, std::int64_t rows,
               std::int64_t heads, std::int64_t channels, std::size_t element_bytes = 2)
      : batch_(batch),
        rows_(rows),
        heads_(heads),
        channels_(channels),
        bytes_(element_bytes),
        strides_(strides(layout, which)),
        memory_(device, bytes_ * static_cast<std::size_t>(last() + 1)) {
    memory_.upload();
  }

  std::size_t size() const { return static_cast<std::size_t>(batch_ * rows_ * heads_ * channels_); }

  flashback_tensor argument() const {
    flashback_tensor tensor = strides_;
    tensor.data = memory_.data();
    // What the library must ignore.
    if (batch_ == 1) tensor.batch_stride = -3;
    if (rows_ == 1) tensor.row_stride = 1;
    if (heads_ == 1) tensor.head_stride = 7;
    return tensor;
  }

  // `taking_part`, where it is not empty, says of each row of all batches whether it is set.
  template <typename Element>
  void set(const std::vector<Element>& packed, const std::vector<bool>& taking_part = {}) {
    for_each([&](std::size_t i, std::int64_t offset) {
      if (taking_part.empty() || taking_part[i / static_cast<std::size_t>(heads_ * channels_)])
        std::memcpy(memory_.host() + bytes_ * offset, &packed[i], bytes_);
    });
    memory_.upload();
  }

  // Reads the elements, and expects every byte between and around them as it was.
  template <typename Element>
  std::vector<Element> get(const char* what) {
    memory_.download();
    memory_.expect_margins_untouched(what);
    std::vector<Element> packed(static_cast<std::size_t>(batch_ * rows_ * heads_ * channels_));
    std::vector<bool> element(bytes_ * static_cast<std::size_t>(1 + last()), false);
    for_each([&](std::size_t i, std::int64_t offset) {
      std::memcpy(&packed[i], memory_.host() + bytes_ * offset, bytes_);
      for (std::size_t byte = 0; byte < bytes_; ++byte) element[bytes_ * offset + byte] = true;
    });
    std::size_t touched = 0;
    for (std::size_t i = 0; i < element.size(); ++i) touched += !element[i] && memory_.host()[i] != 0xff;
    EXPECT_EQ(touched, 0u) << "bytes written between the rows of " << what;
    return packed;
  }

 private:
  flashback_tensor strides(Layout layout, int which) const {
    const std::int64_t gap = layout == Layout::kGaps ? 8 * (1 + which) : 0;
    if (layout == Layout::kHeadMajor)
      return {nullptr, heads_ * rows_ * channels_, channels_, rows_ * channels_};
    const std::int64_t head = channels_ + gap, row = heads_ * head + 2 * gap;
    return {nullptr, rows_ * row + 3 * gap, row, head};
  }
  std::int64_t last() const {
    if (batch_ * rows_ == 0) return -1;
    return (batch_ - 1) * strides_.batch_stride + (rows_ - 1) * strides_.row_stride +
           (heads_ - 1) * strides_.head_stride + channels_ - 1;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    std::size_t i = 0;
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        for (std::int64_t h = 0; h < heads_; ++h) {
          for (std::int64_t c = 0; c < channels_; ++c) {
            visit(i++, b * strides_.batch_stride + r * strides_.row_stride + h * strides_.head_stride + c);
          }
        }
      }
    }
  }

  std::int64_t batch_, rows_, heads_, channels_;
  std::size_t bytes_;
  flashback_tensor strides_;
  Memory memory_;
};

// int32 or fp32 numbers on the device; none: null.
template <typename Number>
class DeviceNumbers {
 public:
  DeviceNumbers(flashback_device* device, const std::vector<Number>& numbers)
      : memory_(device, 4 * numbers.size()), size_(numbers.size()) {
    if (size_ > 0) std::memcpy(memory_.host(), numbers.data(), 4 * size_);
    memory_.upload();
  }
  Number* data() const { return size_ > 0 ? static_cast<Number*>(memory_.data()) : nullptr; }
  std::vector<Number> get(const char* what) {
    memory_.download();
    memory_.expect_margins_untouched(what);
    std::vector<Number> numbers(size_);
    std::memcpy(numbers.data(), memory_.host(), 4 * size_);
    return numbers;
  }

 private:
  Memory memory_;
  std::size_t size_;
};

}  // namespace flashback::test
