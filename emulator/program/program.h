// A decoded kernel: what the machine runs. Every operand is a place in a warp's register file, so that an
// instruction's body never asks what kind of operand it has: immediates, symbols, special registers and
// parameter addresses are registers that are set once, when the warp starts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace flashback::emulator {

class Warp;
struct Step;

using LaneMask = std::uint32_t;  // bit l: lane l takes part
using Slot = std::int32_t;       // byte offset into the register file
inline constexpr Slot kNone = -1;
inline constexpr LaneMask kAllLanes = 0xffffffffu;
using Register = std::int32_t;  // of the PTX text, before slots are assigned; kNone is none

// The body of an instruction for the lanes of `mask` (never empty).
using Body = void (*)(Warp& warp, const Step& step, LaneMask mask);

// A register of w bytes is an array of 32 lanes, 32 * w bytes; a predicate is one LaneMask.
struct Step {
  Body body = nullptr;
  Slot d = kNone, a = kNone, b = kNone, c = kNone;  // as the form's operand string names them
  std::int64_t immediate = 0;  // the displacement of its address operand, or what the form says
  const Slot* list = nullptr;  // vector operand, coordinates, ...; kNone is the sink `_`
  std::uint16_t list_size = 0;
  std::uint16_t form = 0;  // index into Program::forms: the opcode as written
  Slot guard = kNone;
  bool guard_negated = false;
  bool touches_pending_load = false;     // uses a register that a tcgen05.ld may still owe
  bool touches_pending_product = false;  // uses a register that a wgmma.mma_async may still use
  bool writes_list = false;              // else it reads it
  std::uint32_t line = 0;                // of the PTX text
  std::uint32_t target = 0;              // of a branch: index into Program::code
};

// A register that is set when the warp starts.
struct Preset {
  enum class Kind : std::uint8_t {
    kBits,       // `value` in every lane
    kAddress,    // the same, the address of a variable of the module
    kSpecial,    // the special register numbered `value` (enum Special)
    kParameter,  // address of the launch's parameter bytes + `value`
    kShared,     // address in the shared window: `value` is the offset from its start, after layout
    kLocal,      // address of the lane's own local memory + `value`
  };
  Slot slot;
  std::uint8_t bytes;  // 2, 4 or 8; 0 is a predicate
  Kind kind;
  std::uint64_t value;
};

// clang-format off
enum class Special : std::uint8_t {
  kTidX, kTidY, kTidZ, kNtidX, kNtidY, kNtidZ, kCtaidX, kCtaidY, kCtaidZ, kNctaidX, kNctaidY, kNctaidZ,
  kLaneId, kWarpId, kNWarpId, kSmId, kLaneMaskEq, kLaneMaskLt, kLaneMaskLe, kLaneMaskGt, kLaneMaskGe,
  kClusterCtaRank, kClusterNctaRank, kClusterCtaidX, kClusterCtaidY, kClusterCtaidZ,
  kClusterNctaidX, kClusterNctaidY, kClusterNctaidZ, kClusterIdX, kClusterIdY, kClusterIdZ,
  kNclusterIdX, kNclusterIdY, kNclusterIdZ, kIsExplicitCluster,
  kDynamicSharedSize, kTotalSharedSize,
};
// clang-format on

struct Program {
  std::string name;  // of the entry
  std::vector<Step> code;
  std::vector<Preset> presets;
  std::vector<std::string> forms;  // distinct opcodes as written
  std::vector<std::unique_ptr<Slot[]>> lists;

  std::uint32_t register_bytes = 0;  // of one warp
  std::uint32_t parameter_bytes = 0;
  struct Parameter {
    std::uint32_t offset = 0, bytes = 0;
  };
  std::vector<Parameter> parameters;       // in the launch's parameter buffer
  std::uint32_t static_shared_bytes = 0;   // dynamic shared memory starts at the next multiple of 1024
  std::uint32_t local_bytes = 0;           // of one lane
  std::uint32_t max_threads = 0;           // .maxntid / .reqntid product, 0 when absent
  std::uint32_t registers_at_launch = 0;   // a thread: 64 Ki over the threads of an SM's CTAs, in eights
  std::uint32_t required_cluster[3] = {};  // .reqnctapercluster, zeros when absent
  std::uint32_t max_cluster = 0;           // .maxclusterrank: CTAs, 0 when absent
  bool explicit_cluster = false;           // .explicitcluster: CUDA asks that a launch names its cluster
  bool communicates = false;      // a cluster may wait for another: atomics or strong loads of global memory
  bool cancels_launches = false;  // a cluster may take over the work of one that has not started

  bool requires_cluster() const { return required_cluster[0] != 0; }

  struct SourceLine {
    std::uint32_t file = 0, line = 0;
    std::uint32_t caller = 0;  // of an inlined function: 1 + index into callers; else 0
    bool operator==(const SourceLine&) const = default;
  };
  std::vector<SourceLine> source;  // for each Step, from .loc; zeros when absent
  std::vector<SourceLine> callers;
  std::vector<std::string> files;  // from .file, 1-based in PTX; [0] is empty

  // What a step does with the registers of the text, presets apart: who waits for whom.
  struct Access {
    Register register_number;
    Slot slot;
    std::uint8_t bytes;  // 2, 4, 8; 0 is a predicate
    bool read, written;
  };
  std::vector<Access> accesses;             // of step i those from access_begin[i] to access_begin[i + 1]
  std::vector<std::uint32_t> access_begin;  // one more than steps
  // Comments `//@ name`: a section of that name begins before the step; an empty name ends the one before.
  struct Mark {
    std::uint32_t step;
    std::string name;
  };
  std::vector<Mark> marks;  // ascending
};

}  // namespace flashback::emulator
