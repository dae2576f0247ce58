// The instruction set as a table: one row is one line of the ISA manual with the body that executes it.
//
// A row's `form` is the opcode as the manual writes it: pieces in order, `{.x}` optional, `(.x|.y)` a choice,
// `{.x|.y}` an optional choice:
//
//     "fma.rn{.ftz}.f32"
//     "setp(.eq|.ne|.lt|.le|.gt|.ge)(.s32|.u32|.b32)"
//     "tcgen05.wait(::ld|::st).sync.aligned"              (`::x` glues to its piece, part of it)
//
// Its `operands` are named places of the Step and what may stand there, in the order of the text:
//
//     d:r32                 register of 16, 32, 64, 128 bit, or immediate of up to 64; an immediate or a
//     variable's address
//                           becomes a preset register. `d:r` takes any width: ask Match::bytes('d')
//     d:p    !a:p           predicate; the second may carry a `!` (the decoder puts a `not.pred` before)
//     [a:r32]    [a]        address in brackets: register or variable, of 32 bit, or of 32 or 64
//     [a:r64, list:{r32}]   address with coordinates, all of it within the brackets
//     list:{r32}            brace list of registers, any count, in Step::list; list:{r32}x4 exactly four
//     l:r32                 the places beyond d, a, b, c: appended to Step::list in the order of the text
//     d:r32|l:p             is written d|p in the text; d:r32|l:p? where `|p` may be absent
//     i:imm                 a literal that goes to Step::immediate
//     @:label               a branch target, in Step::target
//
// `?` after an operand makes it optional. Absent, its Slot is kNone, also in the list (four of them for
// {r32}x4), so that positions in the list are fixed; only a brace list of any count goes without a trace. `_`
// is kNone too.
//
// Step::immediate is the literal where the row has an `i:imm` (0 when absent), else the displacement of the
// first address of the row. The decoder adds every other displacement beforehand, with the `add` of the
// table.
//
// Written are an unbracketed d, whatever stands after `|`, and a brace list that is the first operand; all
// else is read. A `+` before an operand says that it is read and written: "+list:{r32}x64" of an accumulator.
//
// Rows may share a form and differ in operands; the first that fits is taken. Longer examples:
//
//     shfl.sync.idx.b32                    d:r32|l:p?, a:r32, b:r32, c:r32, l:r32         list: p, membermask
//     st.global.v4.b32                     [a], list:{r32}x4
//     tcgen05.mma.cta_group::1.kind::f16   [d:r32], a:r64, b:r64, c:r32, list:{r32}x4?, l:p, i:imm?
//     (list: four lane words, enable)      [d:r32], [a:r32], b:r64, c:r32, list:{r32}x4?, l:p, i:imm?
//     cp.async.bulk.tensor.4d ...          [d:r32], [a:r64, list:{r32}x4], [b:r32], c:r64?
//
// A call of a function that its module does not define becomes `call.name`, with its result and its arguments
// in registers. Bodies of functions that are defined stand where they are called.
//
// An opcode or an operand list that no row matches is an error with its line: nothing is skipped.
#pragma once

#include <cstdint>
#include <optional>
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
  // 2, 4, 8 or 16 of the register at d, a, b, c, or of the list's first ('l'); 0 when absent or a predicate.
  virtual int bytes(char place) const = 0;
  virtual int list_size() const = 0;
  // The bits of a literal among the list's operands; nothing where a register stands there.
  virtual std::optional<std::uint64_t> list_literal(int n) const = 0;
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
std::span<const Row> float_rows();        // add, sub, mul, fma, div, rcp, sqrt, neg, abs of f32, f32x2, f64
std::span<const Row> half_rows();         // the same of f16, bf16 and their pairs
std::span<const Row> extreme_rows();      // min, max of floating-point numbers
std::span<const Row> approximate_rows();  // ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh, div with .approx
std::span<const Row> comparison_rows();   // setp, set, selp, slct, predicate logic
std::span<const Row> convert_rows();
std::span<const Row> move_rows();             // mov, pack, unpack, cvta, prmt
std::span<const Row> memory_rows();           // ld, st, prefetch
std::span<const Row> atomic_rows();           // atom, red
std::span<const Row> peer_store_rows();       // st.async, red.async
std::span<const Row> launch_control_rows();   // clusterlaunchcontrol
std::span<const Row> control_rows();          // bra, ret, exit, trap
std::span<const Row> provided_rows();         // call.name of the functions that CUDA provides: vprintf, ...
std::span<const Row> convergence_rows();      // elect, shfl, vote, activemask, bar.warp.sync, redux
std::span<const Row> barrier_rows();          // bar/barrier, barrier.cluster, mbarrier, fence, setmaxnreg
std::span<const Row> copy_rows();             // cp.async.bulk(.tensor), cp.reduce, groups, mapa
std::span<const Row> tensor_memory_rows();    // tcgen05.alloc/dealloc/ld/st/wait/fence
std::span<const Row> matrix_rows();           // tcgen05.mma, commit
std::span<const Row> warpgroup_rows();        // wgmma
std::span<const Row> matrix_transfer_rows();  // ldmatrix, stmatrix

}  // namespace flashback::emulator
