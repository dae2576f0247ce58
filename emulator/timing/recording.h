// What one CTA did, warp by warp, as far as time depends on it: instructions, who waits for whose result, and
// what each asked of barriers and asynchronous units. A recording is made once, by the functional machine;
// replay.h puts time to it, under as many cost tables as one likes.
//
// The machine has no clock, and so an order among warps in which it happened to run them means nothing here:
// only each warp's own order is kept, and mbarriers are played again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/observer.h"
#include "emulator/timing/instruction.h"

namespace flashback::emulator::timing {

// One executed instruction. What a and b are depends on its action:
//
//   kSharedLoad, kSharedStore   bank cycles, bytes of registers that it fills or empties
//   kGlobalLoad, kGlobalStore   sectors of 32 bytes, bytes
//   kBarrier, kBarrierArrive    barrier, threads (0: all)
//   kPhaseInit, kPhaseArrive    mbarrier, count
//   kPhaseExpect                mbarrier, bytes
//   kPhaseWait                  mbarrier, parity
//   kTensorLoad, kTensorStore   0, columns
//   kProduct                    Product of a packed, first column of D
//   kGroupProduct               Product of a packed, 0
//   kCommit                     mbarrier, 0
//   kCopyIn                     mbarrier, bytes
//   kCopyOut, kReduceOut        0, bytes
//   kCopyWait(Read), kGroupWait groups that may be unfinished, 0
struct Event {
  std::uint32_t step = 0;  // of Kernel
  std::uint32_t a = 0, b = 0;
  std::uint32_t waits_begin = 0;  // in Stream::waits
  std::uint16_t waits_count = 0;
  std::uint16_t section = 0;  // of Kernel::sections
  std::uint16_t marks = 0;    // that the warp has passed: tells a section from the same one begun anew
};

// A product of a tensor core: M x N x 16.
struct Product {
  std::uint32_t m = 0, n = 0;
  bool a_in_shared = false;

  std::uint32_t packed() const { return m << 16 | n << 1 | std::uint32_t{a_in_shared}; }
  static Product unpacked(std::uint32_t bits) { return {bits >> 16, bits >> 1 & 0x7fff, (bits & 1) != 0}; }
};

// What all CTAs of a program have in common.
struct Kernel {
  struct Step {
    Action action = Action::kArithmetic;
    Pipe pipe = Pipe::kNone;
    float instructions = 1;
    std::uint32_t stretch = 0;  // steps of one stretch the assembler may reorder
    std::uint32_t rank = 0;     // its place in the assembler's order
  };
  std::string name;
  std::vector<Step> steps;
  std::vector<std::string> opcodes;       // of each step
  std::vector<std::uint32_t> lines;       // of each step, in the PTX text
  std::vector<std::string> sections;      // names of marks; [0] is none
  std::vector<std::uint16_t> section_of;  // begins before the step: index into sections; kSame: none does
  static constexpr std::uint16_t kSame = 0xffff;
};

// In the order in which the warp's sub-partition is given them.
struct Stream {
  std::vector<Event> events;
  std::vector<std::uint32_t> waits;  // events of this stream whose results an event reads
};

struct Recording {
  std::shared_ptr<const Kernel> kernel;
  std::uint64_t cta = 0;  // in start order
  std::vector<Stream> warps;
  std::uint32_t mbarriers = 0;  // Event::a counts them from 0
};

// Records the CTAs of a launch that `wants` asks for.
class Recorder final : public Observer {
 public:
  // The main kernel among a pass's launches is told by the start of its name.
  Recorder(std::string entry_prefix, std::function<bool(std::uint64_t cta)> wants);
  ~Recorder() override;

  void launch_began(const Program& program) override;
  void cta_began(const Cta& cta) override;
  void executed(const Warp& warp, const Step& step, LaneMask mask) override;
  void accessed(const Warp& warp, const Step& step, const LaneAccess& access) override;
  void accessed(const OperationAccess&) override {}
  void accessed(const ColumnAccess&) override {}
  void issued(const Operation& operation) override;
  void mbarrier(const MbarrierEvent& event) override;
  void cta_ended(const Cta& cta) override;

  std::vector<Recording> take() { return std::move(recordings_); }
  // Not empty where the program has an opcode without a cost; then nothing is recorded.
  const std::string& error() const { return error_; }

 private:
  struct Open;
  // What the instruction that is about to be reported has caused.
  struct Effects {
    std::vector<LaneAccess> accesses;  // `addresses` are copied to `addresses` below
    std::vector<std::uint64_t> addresses;
    std::vector<Operation> operations;
    std::vector<MbarrierEvent> arrivals;
  };
  void note(Open& open, const Warp& warp, const Step& step, LaneMask mask, std::uint32_t index);

  std::string entry_prefix_;
  std::function<bool(std::uint64_t)> wants_;
  const Program* program_ = nullptr;  // while its launch runs and is recorded
  std::shared_ptr<const Kernel> kernel_;
  std::vector<bool> a_in_shared_;  // of each step: a product whose A is a descriptor
  std::vector<std::unique_ptr<Open>> open_;
  Effects effects_;
  std::string error_;
  std::vector<Recording> recordings_;
};

}  // namespace flashback::emulator::timing
