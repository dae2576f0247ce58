// Accesses that nothing orders. ISA 8.5 (scopes), 8.7.1 (conflict and data races), 8.9.5 (causality
// order), 8.6 (proxies), 9.7.16.6 (tensor memory).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/check/cta_state.h"
#include "emulator/check/finding.h"
#include "emulator/check/sight.h"

namespace flashback::emulator::checking {

// An access as the rules see it.
struct Access {
  CtaState* state = nullptr;  // whose warps or operations
  const Step* step = nullptr;
  View view;
  std::uint32_t operation = 0;  // 1 + place in state->operations; 0: the lanes of the view
  Operation::Kind kind = Operation::Kind::kBulkLoad;  // of the operation
  bool reads = false, writes = false;
  bool strong = false;
  bool sums_floats = false;
  bool async_proxy = false;
};

class Races {
 public:
  Races(Findings& findings, const Operations& operations, bool strict, bool fixed_sums)
      : findings_(findings), operations_(operations), strict_(strict), fixed_sums_(fixed_sums) {}
  void begin_launch(const Program& program) {
    program_ = &program;
    global_.clear();
  }

  // `owner`: of the shared or tensor memory.
  void bytes(const Access& access, CtaState* owner, std::uint64_t begin, std::uint64_t count);
  void columns(const Access& access, CtaState& owner, std::uint32_t first, std::uint32_t count,
               const LaneMask (&lanes)[4]);
  // Makes known what the accesses since the last call, which were lanes that know the same or one operation,
  // were in conflict with.
  void report(const Access& access);

 private:
  enum class Order : std::uint8_t {
    kOrdered,
    kUnordered,
    kNotProxied,      // ordered, without fence.proxy.async
    kNotScoped,       // ordered, by a scope that does not reach: strict
    kNotFenced,       // ordered, without the fences of tcgen05: strict
    kOnlyIssueOrder,  // products of other accumulators: strict
  };
  struct Conflict {
    Order order;
    bool of_sums = false;  // the order shows in a sum's last bits
    bool uninitialised = false, earlier_writes = false, on_mbarrier = false;
    Record earlier;
    Space space;
    std::uint64_t first, last;  // bytes or columns
    LaneMask lanes[4];
  };

  void piece(const Access& access, Piece& piece, std::uint32_t part, Space space, std::uint64_t place);
  // `state`: of the CTA that asks.
  const OperationState* operation_of(const Record& record, const CtaState& state) const {
    if (record.operation == 0) return nullptr;
    const bool own = record.cta == state.number;
    return &(own ? *state.operations : operations_.at(record.cta))[record.operation - 1];
  }
  bool knows(const Sight& sight, const Access& access, const Record& earlier, bool earlier_writes,
             bool exempt, bool by_lane) const;
  // The same, asked once for what an earlier access did to the pieces of this one.
  Order order_of_pieces(const Record& earlier, bool earlier_writes, const Access& access, Space space);
  Order order(const Record& earlier, bool earlier_writes, const Access& access, Space space) const;
  Order order(const Record& earlier, bool earlier_writes, const Access& access, Space space,
              bool scoped) const;
  void note(const Conflict& conflict, std::uint32_t part, std::uint64_t place);
  std::string sentence(const Access& access, const Conflict& conflict) const;

  Findings& findings_;
  const Operations& operations_;
  const bool strict_, fixed_sums_;
  const Program* program_ = nullptr;
  GlobalShadow global_;
  std::vector<Conflict> conflicts_;
  struct Answer {
    Record earlier;  // without a step: none
    Order order = Order::kOrdered;
  };
  Answer lately_[2];  // since the last report: against an earlier read, and an earlier write
};

}  // namespace flashback::emulator::checking
