// Who passes what on to whom through mbarriers and named barriers, and whether they are used as the ISA asks.
// ISA 9.7.13.1 (barriers), 9.7.13.4 (cluster barrier), 9.7.13.15 (mbarriers).
#pragma once

#include <map>

#include "emulator/check/cta_state.h"
#include "emulator/check/finding.h"
#include "emulator/check/form.h"

namespace flashback::emulator::checking {

class Mbarriers {
 public:
  Mbarriers(Findings& findings, bool strict) : findings_(findings), strict_(strict) {}
  void begin_launch(const Program& program) { program_ = &program; }
  // `operation`: the state of the event's operation, or null.
  void event(CtaState& owner, CtaState& by, const MbarrierEvent& event, const Form& form,
             OperationState* operation);

 private:
  void init(CtaState& owner, CtaState& by, const MbarrierEvent& event, MbarrierState& state);
  void require_initialised(CtaState& owner, CtaState& by, const MbarrierEvent& event,
                           const MbarrierState& state, const OperationState* operation);
  void arrive(CtaState& owner, CtaState& by, const MbarrierEvent& event, const Form& form,
              OperationState* operation, MbarrierState& state);
  static void tell_copies(CtaState& by, std::uint32_t warp, const OperationState& arrival,
                          const OperationState::Told& told);
  void wait(CtaState& by, const MbarrierEvent& event, const Form& form, MbarrierState& state);

  Findings& findings_;
  bool strict_;
  const Program* program_ = nullptr;
};

class Barriers {
 public:
  Barriers(Findings& findings, bool strict) : findings_(findings), strict_(strict) {}
  void begin_launch(const Program& program) {
    program_ = &program;
    clusters_.clear();
  }
  void joined(CtaState& state, std::uint32_t warp, const Step& step, std::uint32_t id,
              std::uint32_t generation);
  void passed(CtaState& state, std::uint32_t warp, std::uint32_t id, std::uint32_t generation);
  void cluster_began(const Cluster& cluster) { clusters_.erase(&cluster); }
  void cluster_joined(CtaState& state, std::uint32_t warp, std::uint32_t generation, bool relaxed);
  void cluster_passed(CtaState& state, std::uint32_t warp, std::uint32_t generation);

 private:
  // A generation of a cluster's barrier: what each CTA's warps passed on.
  using ClusterGeneration = std::map<std::uint64_t, Knowledge>;

  Findings& findings_;
  bool strict_;
  const Program* program_ = nullptr;
  std::map<const Cluster*, std::map<std::uint32_t, ClusterGeneration>> clusters_;
};

}  // namespace flashback::emulator::checking
