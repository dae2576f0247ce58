// A list whose room is inside it, so that a plan takes no memory from the heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <type_traits>

namespace flashback {

// At most `kMost` elements; one more throws std::length_error. Copies cost what is in it, not what fits.
template <typename T, std::size_t kMost>
class FixedList {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes and never destroyed");

 public:
  FixedList() {}
  FixedList(std::initializer_list<T> elements) {
    for (const T& element : elements) push_back(element);
  }
  FixedList(const FixedList& other) { *this = other; }
  FixedList& operator=(const FixedList& other) {
    size_ = other.size_;
    std::memmove(room_.data(), other.room_.data(), size_ * sizeof(T));
    return *this;
  }

  void push_back(const T& element) { new (room_for_one()) T(element); }
  // A blank one, to be filled in where it is.
  T& add() { return *new (room_for_one()) T(); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return std::launder(reinterpret_cast<T*>(room_.data())); }
  T* end() { return begin() + size_; }
  const T* begin() const { return std::launder(reinterpret_cast<const T*>(room_.data())); }
  const T* end() const { return begin() + size_; }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }

 private:
  std::byte* room_for_one() {
    if (size_ == kMost) throw std::length_error("a plan is longer than any plan can be");
    return room_.data() + size_++ * sizeof(T);
  }

  alignas(T) std::array<std::byte, kMost * sizeof(T)> room_;
  std::size_t size_ = 0;
};

}  // namespace flashback
