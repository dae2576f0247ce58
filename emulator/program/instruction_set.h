// The instruction set as a table: one row is one line of the ISA manual with the body that executes it.
//
// A row's `form` is the opcode as the manual writes it: pieces in order, `{.x}` optional, `(.x|.y)` a choice,
// `{.x|.y}` an optional choice:
//     "fma.rn{.ftz}.f32"     "setp(.eq|.ne|.lt|.le|.gt|.ge)(.s32|.u32|.b32)"
//     "tcgen05.wait(::ld|::st).sync.aligned"
// (`::x` glues to its piece and is matched as part of it.)
// Its `operands` are named places of the Step and what may stand there, in the order of the text:
//     d:r32          register or immediate of 16, 32 or 64 bit (an immediate or the address of a variable
//     becomes a
//                    preset register); `d:r` takes any of the three widths: ask Match::bytes('d')
//     d:p            predicate;   !a:p may carry a `!` (the decoder puts a `not.pred` before)
//     l:r32          the places beyond d, a, b, c: appended to Step::list, in the order of the text
//     list:{r32}     brace list of registers, any count, appended to Step::list; list:{r32}x4 exactly four
//     [a:r32]        address in brackets: register or symbol;   [a] is the same, a 32 or 64 bit register
//     [a:r64, list:{r32}]   address with coordinates: all parts within the brackets
//     d:r32|l:p      is written d|p in the text; "d:r32|l:p?" where `|p` may be absent
//     i:imm          a literal that goes to Step::immediate;   @:label   a branch target
// `?` after an operand makes it optional. Absent: the Slot is kNone, also in the list (four of them for
// {r32}x4), so that positions in the list are fixed; only a brace list of any count may be absent without a
// trace. `_` is kNone as well. Step::immediate is the literal `i:imm` where the row has one (0 when absent),
// else the displacement of the first address of the row. Every other displacement is added beforehand by the
// decoder (with `add`), so bodies know one at most. Written are: an unbracketed d, whatever stands after `|`,
// and a brace list that is the first operand. All else is read;
// `+` before an operand says that it is read and written ("+list:{r32}x64" of an accumulator).
// Rows may share a form and differ in operands: the first that fits is taken. Examples:
//     "shfl.sync.idx.b32"    "d:r32|l:p?, a:r32, b:r32, c:r32, l:r32"          list = {p, membermask}
//     "elect.sync"           "d:r32|l:p, a:r32"                                list = {p}
//     "st.global.v4.b32"     "[a], list:{r32}x4"
//     "tcgen05.mma.cta_group::1.kind::f16"
//         "[d:r32], a:r64, b:r64, c:r32, list:{r32}x4?, l:p, i:imm?"           list = {4 lane words or kNone,
//         enable}
//         "[d:r32], [a:r32], b:r64, c:r32, list:{r32}x4?, l:p, i:imm?"
//     "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes{.L2::cache_hint}"
//         "[d:r32], [a:r64, list:{r32}x4], [b:r32], c:r64?"                    list = coordinates
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
  virtual bool has(std::string_view piece) const = 0;  // ".ftz"
  // The piece that the n-th choice `(...)` or `{.x|.y}` of the form took, without its dot; empty when absent.
  virtual std::string_view choice(int n) const = 0;
  // 2, 4 or 8 of the register at d, a, b, c, or of the first one in the list ('l'); 0 when absent or a
  // predicate.
  virtual int bytes(char place) const = 0;
  virtual int list_size() const = 0;
  virtual Step& step() = 0;  // may set `immediate`

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
