// Watches a run and says what is wrong with the program's synchronisation, whether or not it showed.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/check/cta_state.h"
#include "emulator/check/finding.h"
#include "emulator/check/form.h"
#include "emulator/check/memory_order.h"
#include "emulator/check/races.h"
#include "emulator/check/synchronisation.h"
#include "emulator/check/warp_products.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator::checking {

class Checker : public Observer {
 public:
  // `strict`: advice too, where the ISA promises less than hardware does. `fixed_sums`: sums of floats in
  // memory have to come in a fixed order.
  explicit Checker(bool strict, bool fixed_sums = false)
      : strict_(strict),
        races_(findings_, operations_, strict, fixed_sums),
        mbarriers_(findings_, strict),
        barriers_(findings_, strict),
        products_(findings_) {}

  const std::vector<Finding>& findings() const { return findings_.all(); }

  void launch_began(const Program& program) override;
  void cta_began(const Cta& cta) override;
  void cta_ended(const Cta& cta) override;
  void warp_ended(const Warp& warp) override;
  void stuck(const Cta& cta) override;
  void executed(const Warp& warp, const Step& step, LaneMask mask) override;
  void accessed(const Warp& warp, const Step& step, const LaneAccess& access) override;
  void issued(const Operation& operation) override;
  void accessed(const OperationAccess& access) override;
  void accessed(const ColumnAccess& access) override;
  void ended(std::uint64_t operation) override;
  void mbarrier(const MbarrierEvent& event) override;
  void barrier_joined(const Warp& warp, const Step& step, std::uint32_t id, std::uint32_t threads,
                      std::uint32_t generation) override;
  void barrier_passed(const Warp& warp, const Step& step, std::uint32_t id,
                      std::uint32_t generation) override;
  void cluster_barrier_joined(const Warp& warp, const Step& step, std::uint32_t generation) override;
  void cluster_barrier_passed(const Warp& warp, const Step& step, std::uint32_t generation) override;
  void columns_allocated(const Warp& warp, const Step& step, std::uint32_t first,
                         std::uint32_t columns) override;
  void columns_released(const Warp& warp, const Step& step, std::uint32_t first,
                        std::uint32_t columns) override;

 private:
  struct Place {  // of an operation: whose, and 1 + index there
    CtaState* state = nullptr;
    std::uint32_t index = 0;
  };

  CtaState& state_of(const Cta& cta) {
    if (lately_.cta != &cta) lately_ = {&cta, ctas_.at(&cta).get()};
    return *lately_.state;
  }
  CtaState& state_of(const Warp& warp) { return state_of(warp.cta()); }
  WarpState& warp_of(const Warp& warp) {
    return state_of(warp).warps[static_cast<std::size_t>(warp.index())];
  }
  const Form& form_of(const Step& step) const { return forms_[step.form]; }
  Place place_of(std::uint64_t operation) const { return places_[operation - first_operation_]; }
  Access operation_access(std::uint64_t operation, Use use);
  void wait_groups(CtaState& state, WarpState& warp, const Form& form, const Step& step, LaneMask mask);

  const bool strict_;
  Findings findings_;
  Operations operations_;
  Races races_;
  Mbarriers mbarriers_;
  Barriers barriers_;
  MemoryOrder memory_order_;
  WarpProductRules products_;
  const Program* program_ = nullptr;
  std::vector<Form> forms_;
  std::unordered_map<const Cta*, std::unique_ptr<CtaState>> ctas_;
  struct {
    const Cta* cta = nullptr;
    CtaState* state = nullptr;
  } lately_;                   // asked for
  std::vector<Place> places_;  // of this launch's operations, by number
  std::uint64_t first_operation_ = 1;
};

}  // namespace flashback::emulator::checking
