#include "emulator/check/warp_products.h"

#include <algorithm>

#include "emulator/check/words.h"
#include "emulator/machine/units/warp_products.h"

namespace flashback::emulator::checking {
namespace {

constexpr Slot kSlotUnit = 4;  // a predicate, the smallest register

std::size_t place(Slot slot) {
  return static_cast<std::size_t>(slot / kSlotUnit);
}

}  // namespace

void WarpProductRules::begin_launch(const Program& program, const std::vector<Form>& forms) {
  program_ = &program;
  has_products_ =
      std::any_of(forms.begin(), forms.end(), [](const Form& f) { return f.kind == Form::Kind::kProduct; });
}

void WarpProductRules::begin_warp(WarpState& warp) const {
  warp.touched.assign(has_products_ ? program_->register_bytes / kSlotUnit + 1 : 0, true);
}

void WarpProductRules::executed(const CtaState& state, WarpState& warp, const Step& step, Form::Kind kind) {
  if (!has_products_) return;
  if (kind == Form::Kind::kProductFence) {
    std::fill(warp.touched.begin(), warp.touched.end(), false);
    return;
  }
  if (kind != Form::Kind::kProduct) {
    for (const Slot slot : {step.d, step.a, step.b, step.c}) {
      if (slot >= 0) warp.touched[place(slot)] = true;
    }
    for (int i = 0; i < step.list_size; ++i) {
      if (step.list[i] >= 0) warp.touched[place(step.list[i])] = true;
    }
    return;
  }
  const WarpProductShape shape = WarpProductShape::of(step);
  const int registers = shape.d_registers() + (shape.a_in_registers ? 4 : 0);
  for (int r = 0; r < registers; ++r) {
    if (!warp.touched[place(step.list[r])]) continue;
    const bool is_d = r < shape.d_registers();
    findings_.add("wgmma", Severity::kError, source_key(*program_, &step) + (is_d ? " d" : " a"), [&] {
      return fmt::format(
          "{}: warp {} issues a product ({}) whose {} has been accessed since the last wgmma.fence of the "
          "warp; one "
          "must stand between.",
          cta_words(*state.cta), warp.threads.first() / 32, step_words(*program_, step),
          is_d ? "accumulator" : "operand A in registers");
    });
    return;
  }
}

}  // namespace flashback::emulator::checking
