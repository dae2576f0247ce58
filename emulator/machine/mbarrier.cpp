#include "emulator/machine/mbarrier.h"

#include <fmt/format.h>

#include <cstring>

#include "emulator/machine/fault.h"

namespace flashback::emulator {

// Bits 0-19 pending arrivals, 20-39 expected arrivals, 40-62 transactions (signed), 63 parity of the phase.
Mbarrier::Counts Mbarrier::load() const {
  const std::uint64_t word = bits();
  if (word == kUninitialised) throw Misuse("the mbarrier has not been initialised");
  return {static_cast<std::uint32_t>(word & kMaxCount), static_cast<std::uint32_t>(word >> 20 & kMaxCount),
          static_cast<std::int32_t>(static_cast<std::int64_t>(word << 1) >> 41),
          static_cast<std::uint32_t>(word >> 63)};
}

void Mbarrier::store(Counts counts) {
  constexpr std::int32_t kMaxTransactions = (1 << 20) - 1;
  if (counts.transactions > kMaxTransactions || counts.transactions < -kMaxTransactions) {
    throw Misuse(fmt::format("the mbarrier's transaction count becomes {}; its range is -{} to {}",
                             counts.transactions, kMaxTransactions, kMaxTransactions));
  }
  if (counts.pending == 0 && counts.transactions == 0) {
    counts.phase ^= 1;
    counts.pending = counts.expected;
  }
  const std::uint64_t word = counts.pending | std::uint64_t{counts.expected} << 20 |
                             (static_cast<std::uint64_t>(counts.transactions) & 0x7fffff) << 40 |
                             std::uint64_t{counts.phase} << 63;
  std::memcpy(word_, &word, sizeof word);
}

std::uint64_t Mbarrier::bits() const {
  std::uint64_t word;
  std::memcpy(&word, word_, sizeof word);
  return word;
}

void Mbarrier::init(std::uint32_t count) {
  if (count == 0 || count > kMaxCount) {
    throw Misuse(fmt::format("an mbarrier of {} arrivals; 1 to {} are allowed", count, kMaxCount));
  }
  store({count, count, 0, 0});
}

void Mbarrier::invalidate() {
  load();
  std::memcpy(word_, &kUninitialised, sizeof kUninitialised);
}

void Mbarrier::arrive(std::uint32_t count) {
  Counts counts = load();
  if (count == 0 || count > counts.pending) {
    throw Misuse(fmt::format("{} arrivals at an mbarrier where {} of {} are pending", count, counts.pending,
                             counts.expected));
  }
  counts.pending -= count;
  store(counts);
}

void Mbarrier::expect(std::uint32_t bytes) {
  Counts counts = load();
  counts.transactions += static_cast<std::int32_t>(bytes);
  store(counts);
}

void Mbarrier::expect_and_arrive(std::uint32_t bytes) {
  Counts counts = load();
  if (counts.pending == 0) {
    throw Misuse(fmt::format("an arrival at an mbarrier where 0 of {} are pending", counts.expected));
  }
  counts.transactions += static_cast<std::int32_t>(bytes);
  counts.pending -= 1;
  store(counts);
}

void Mbarrier::complete(std::uint32_t bytes) {
  Counts counts = load();
  counts.transactions -= static_cast<std::int32_t>(bytes);
  store(counts);
}

void Mbarrier::add_pending(std::uint32_t count) {
  Counts counts = load();
  counts.pending += count;
  if (counts.pending > kMaxCount)
    throw Misuse(fmt::format("{} arrivals pending at an mbarrier", counts.pending));
  store(counts);
}

std::uint32_t Mbarrier::phase() const {
  return load().phase;
}

bool Mbarrier::phase_done(std::uint32_t parity) const {
  return phase() != (parity & 1);
}

std::string Mbarrier::describe() const {
  if (!initialised()) return "not initialised";
  const Counts counts = load();
  return fmt::format("phase {}, {} of {} arrivals pending, {} bytes to come", counts.phase, counts.pending,
                     counts.expected, counts.transactions);
}

}  // namespace flashback::emulator
