// The registers of wgmma.mma_async: a wgmma.fence has to stand between another access of them and the
// product. ISA 9.7.15.7.1. (That nobody touches them before the wait is the machine's own rule.)
#pragma once

#include "emulator/check/cta_state.h"
#include "emulator/check/finding.h"
#include "emulator/check/form.h"

namespace flashback::emulator::checking {

class WarpProductRules {
 public:
  explicit WarpProductRules(Findings& findings) : findings_(findings) {}
  void begin_launch(const Program& program, const std::vector<Form>& forms);
  void begin_warp(WarpState& warp) const;
  void executed(const CtaState& state, WarpState& warp, const Step& step, Form::Kind kind);

 private:
  Findings& findings_;
  const Program* program_ = nullptr;
  bool has_products_ = false;
};

}  // namespace flashback::emulator::checking
