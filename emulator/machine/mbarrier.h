// An mbarrier object: 64 bits of shared memory.
//
// A phase completes when no arrival is pending and the transaction count is zero; then the next one begins
// with all expected arrivals pending. Both counts are looked at after each arrival and each change of the
// transactions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flashback::emulator {

class Mbarrier {
 public:
  static constexpr std::uint32_t kMaxCount = (1u << 20) - 1;

  explicit Mbarrier(std::byte* word) : word_(word) {}

  void init(std::uint32_t count);
  void invalidate();
  // These throw Misuse where the object was not initialised or a count leaves its range.
  void arrive(std::uint32_t count);
  void expect(std::uint32_t bytes);  // bytes that are still to come
  void expect_and_arrive(std::uint32_t bytes);
  void complete(std::uint32_t bytes);           // bytes that came
  void add_pending(std::uint32_t count);        // cp.async.mbarrier.arrive without .noinc
  bool phase_done(std::uint32_t parity) const;  // the phase of this parity is over
  std::uint32_t phase() const;                  // parity of the one under way
  std::uint64_t bits() const;
  bool initialised() const { return bits() != kUninitialised; }
  std::string describe() const;  // "phase 1, 3 of 8 arrivals pending, 4096 bytes to come"

 private:
  // Poisoned memory is all ones, which no object in use can be.
  static constexpr std::uint64_t kUninitialised = ~std::uint64_t{0};

  struct Counts {
    std::uint32_t pending, expected;
    std::int32_t transactions;
    std::uint32_t phase;
  };
  Counts load() const;
  void store(Counts counts);

  std::byte* word_;
};

}  // namespace flashback::emulator
