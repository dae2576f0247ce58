// The instruction set as a table: one row is one line of the ISA manual with the body that executes it.
//
// A row's `form` is the opcode as the manual writes it: pieces in order, `{.x}` optional, `(.x|.y)` a choice,
// `{.x|.y}` an optional choice:
//     "fma.rn{.ftz}.f32"     "setp(.eq|.ne|.lt|.le|.gt|.ge)(.s32|.u32|.b32)"     "tcgen05.wait(::ld|::st).sync.aligned"
// (`::x` glues to its piece and is matched as part of it.)
// Its `operands` are named places of the Step and what may stand there, in the order of the text:
//     d:r32          register or immediate, 16 / 32 / 64 bit (an immediate becomes a preset register)
//     d:p            predicate;   !a:p may carry a `!` (the decoder makes a negated copy step)
//     [a:r32]        address in brackets: register or symbol, with its displacement in Step::immediate
//     [a]            the same, 32 or 64 bit register: ask Match::bytes('a')
//     list:{r32}     brace list of registers, any count; list:{r32}x4 exactly four
//     d:p|q:...      is written d|c in the text: both places named, e.g. "d:p|c:p" or "d:r32|c:p"
//     i:imm          a literal that goes to Step::immediate;   @:label   a branch target
// `?` after an operand makes it optional (absent: the Slot is kNone).
// An opcode or an operand list that no row matches is an error with its line: nothing is skipped.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/program/program.h"

namespace flashback::emulator {

// What a row's `select` may ask about the instruction that matched it.
class Match {
 public:
  virtual bool has(std::string_view piece) const = 0;                // ".ftz"
  // The piece that the n-th choice `(...)` or `{.x|.y}` of the form took, without its dot; empty when absent.
  virtual std::string_view choice(int n) const = 0;
  virtual int bytes(char place) const = 0;                           // 2, 4, 8 of the register at d, a, b, c; 0 when absent
  virtual int list_size() const = 0;
  virtual Step& step() = 0;                                          // may set `immediate`

 protected:
  ~Match() = default;
};

struct Row {
  std::string_view form;
  std::string_view operands;
  Body (*select)(Match& match);  // null: this combination does not exist
};

// The families, each beside its bodies in emulator/machine/execute/.
std::span<const Row> integer_rows();
std::span<const Row> float_rows();
std::span<const Row> convert_rows();
std::span<const Row> move_rows();           // mov, pack, unpack, selp, setp, cvta, prmt, predicate logic
std::span<const Row> memory_rows();         // ld, st, atom, red, prefetch
std::span<const Row> control_rows();        // bra, ret, exit, trap, call of device functions
std::span<const Row> convergence_rows();    // elect, shfl, vote, activemask, bar.warp.sync, redux
std::span<const Row> barrier_rows();        // bar/barrier, mbarrier, fence, setmaxnreg, griddepcontrol
std::span<const Row> copy_rows();           // cp.async.bulk(.tensor), cp.reduce, groups
std::span<const Row> tensor_memory_rows();  // tcgen05.alloc/dealloc/ld/st/wait/fence
std::span<const Row> matrix_rows();         // tcgen05.mma, commit

}  // namespace flashback::emulator
