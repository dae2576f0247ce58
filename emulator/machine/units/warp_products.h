// wgmma.mma_async m64nNk16 with 16-bit operands, or m64nNk8 with tf32: D = A B (+ D), D and perhaps A in
// registers. D is fp32, or fp16: then the fp32 result is rounded once more, to nearest even.
//
// A warpgroup issues it together, and each of its four warps has 16 of the 64 rows. Nothing orders the warps
// among themselves but their barriers; so a warp's product is a piece of work of its own. It reads its
// operands, A in registers as well, and writes D at one moment between its issue and the first wait_group, of
// any of the four warps, that covers it; the products of a warp take effect in the order of issue.
#pragma once

#include <cstdint>
#include <deque>

#include "emulator/machine/units/matrix_arithmetic.h"
#include "emulator/machine/units/operand_descriptor.h"
#include "emulator/program/program.h"

namespace flashback::emulator {

class Warp;

// What the opcode and its literals say, kept in Step::immediate.
struct WarpProductShape {
  int n = 0;
  Half type = Half::kBf16;  // of A and B
  bool a_in_registers = false;
  bool a_mn_major = false, b_mn_major = false;
  bool negative = false;  // - A B
  bool d_is_f16 = false;  // two neighbouring columns in a register

  std::int64_t packed() const;
  static WarpProductShape of(const Step& step);
  // Step::list: the registers of D, then four of A where it is in registers.
  int d_registers() const { return d_registers(n); }
  int d_registers(int columns) const { return columns / (d_is_f16 ? 4 : 2); }
};

struct WarpProduct {
  const Step* step = nullptr;
  bool accumulate = false;
  std::uint64_t a = 0, b = 0;   // descriptors
  std::uint32_t group = 0;      // the wgmma-group that it is committed with
  std::uint64_t operation = 0;  // its number, for the observer
};

// The fields of a descriptor for sm_90a.
OperandDescriptor decode_warpgroup_descriptor(std::uint64_t bits);

// The products of one warp.
struct WarpProducts {
  std::deque<WarpProduct> pending;  // issued, without effect so far
  std::uint32_t groups = 0;         // committed
};

void perform(Warp& warp, const WarpProduct& product);
void complete_oldest_product(Warp& warp);
// The first `groups` of the warp take effect.
void complete_product_groups(Warp& warp, std::uint32_t groups);
// Faults where the step uses registers of a product without effect: Step::touches_pending_product.
void check_touch(const Warp& warp, const Step& step);

// That the warps of a warpgroup issue the same products in the same order.
class WarpgroupOrder {
 public:
  // Throws Misuse when another warp has issued something else in this place. `warp`: 0 to 3.
  void issued(int warp, const WarpProduct& product);
  // A warp reaches a fence. Returns how many fences all four had passed before.
  std::uint32_t reached(int warp) {
    const std::uint32_t before = fences_passed_;
    reached_ |= 1u << warp;
    if (reached_ == 0xf) {
      reached_ = 0;
      ++fences_passed_;
    }
    return before;
  }
  bool passed(std::uint32_t before) const { return fences_passed_ != before; }
  // Whether all four have issued as many.
  bool settled() const { return issued_.empty(); }

 private:
  std::deque<WarpProduct> issued_;  // by one warp at least and not by all
  std::uint64_t forgotten_ = 0;     // issued by all
  std::uint64_t count_[4] = {};
  std::uint32_t reached_ = 0;  // bit w: warp w waits at the fence
  std::uint32_t fences_passed_ = 0;
};

}  // namespace flashback::emulator
