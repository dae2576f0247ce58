// An mbarrier as somebody uses it: each change is made known to the observer of the run.
#pragma once

#include <cstdint>

#include "emulator/machine/cta.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator {

struct MbarrierUser {
  const Warp* warp = nullptr;
  const Step* step = nullptr;
  LaneMask lanes = 0;
  std::uint64_t operation = 0;  // 0: the lanes themselves
};

class MbarrierAccess {
 public:
  MbarrierAccess(Cta& owner, std::uint32_t address, const MbarrierUser& by)
      : owner_(owner), address_(address), by_(by), object_(owner.shared(address)) {}

  std::uint64_t bits() const { return object_.bits(); }
  bool phase_done(std::uint32_t parity) const { return object_.phase_done(parity); }

  void init(std::uint32_t count) {
    object_.init(count);
    tell(MbarrierEvent::Kind::kInit, count, false);
  }
  void invalidate() {
    object_.invalidate();
    tell(MbarrierEvent::Kind::kInvalidate, 0, false);
  }
  void arrive(std::uint32_t count) {
    change(MbarrierEvent::Kind::kArrive, count, [&] { object_.arrive(count); });
  }
  void expect(std::uint32_t bytes) {
    change(MbarrierEvent::Kind::kExpect, bytes, [&] { object_.expect(bytes); });
  }
  void expect_and_arrive(std::uint32_t bytes) {
    tell(MbarrierEvent::Kind::kExpect, bytes, false);
    change(MbarrierEvent::Kind::kArrive, 1, [&] { object_.expect_and_arrive(bytes); });
  }
  void complete(std::uint32_t bytes) {
    change(MbarrierEvent::Kind::kComplete, bytes, [&] { object_.complete(bytes); });
  }
  void add_pending(std::uint32_t count) {
    change(MbarrierEvent::Kind::kIncrement, count, [&] { object_.add_pending(count); });
  }
  // That a wait or a test for the phase of `parity` succeeded.
  void waited(std::uint32_t parity) const { tell(MbarrierEvent::Kind::kWait, 0, false, parity); }

 private:
  template <class F>
  void change(MbarrierEvent::Kind kind, std::uint32_t amount, F&& f) {
    if (owner_.observer() == nullptr) [[likely]] {
      f();
      return;
    }
    const std::uint32_t phase = object_.phase();
    f();
    tell(kind, amount, object_.phase() != phase);
  }
  void tell(MbarrierEvent::Kind kind, std::uint32_t amount, bool ends_phase, std::uint32_t parity = 0) const {
    Observer* observer = owner_.observer();
    if (observer == nullptr) [[likely]]
      return;
    MbarrierEvent event;
    event.kind = kind;
    event.owner = &owner_;
    event.address = on_rank(address_, 0);
    event.warp = by_.warp;
    event.step = by_.step;
    event.lanes = by_.lanes;
    event.operation = by_.operation;
    event.amount = amount;
    event.parity = parity;
    event.ends_phase = ends_phase;
    observer->mbarrier(event);
  }

  Cta& owner_;
  std::uint32_t address_;
  MbarrierUser by_;
  Mbarrier object_;
};

}  // namespace flashback::emulator
