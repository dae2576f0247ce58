// PTX text as syntax: what is written, in the order of the text, names unresolved. Every string_view points
// into `Module::text`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace flashback::emulator::ptx {

struct Position {
  std::uint32_t line = 0, column = 0;  // from 1
};

struct Operand {
  enum class Kind : std::uint8_t {
    kName,      // register, special register, variable or label; `name + integer` sets `displacement`
    kInteger,   // `bits`, sign-extended
    kFloat,     // 0f........: `bits` of a binary32
    kDouble,    // 0d................ or a decimal fraction: `bits` of a binary64
    kBrackets,  // [address] or [address, {coordinates}, ...]: `parts`
    kBraces,    // {a, b, _}: `parts`
    kParens,    // (a, b) of a call: `parts`
    kPair,      // a|b: two `parts`
    kSink,      // _
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // !name
  Position at;
  std::string_view name;
  std::uint64_t bits = 0;
  std::int64_t displacement = 0;
  std::vector<Operand> parts;
};

struct Instruction {
  std::string_view opcode;  // "fma.rn.ftz.f32"
  std::string_view guard;   // register of @p or @!p; empty without
  bool guard_negated = false;
  Position at;
  std::vector<Operand> operands;
};

struct Label {
  std::string_view name;
  Position at;
};

// .reg .b32 %r<40>;  declares %r0 ... %r39; .reg .b32 sum; declares one, `count` 0.
struct Registers {
  std::string_view type;  // "b32"
  std::string_view prefix;
  std::uint32_t count = 0;
  Position at;
};

enum class Space : std::uint8_t { kGlobal, kConstant, kShared, kLocal, kParameter };

// Whether its variables belong to the module, not to a CTA or a thread.
constexpr bool is_of_module(Space space) {
  return space == Space::kGlobal || space == Space::kConstant;
}

// An address in an initialiser: 8 bytes at `offset` are the address of `name` plus `addend`.
struct Relocation {
  std::uint64_t offset = 0;
  std::string_view name;
  std::int64_t addend = 0;
};

struct Variable {
  Space space = Space::kGlobal;
  std::string_view name;
  std::string_view type;    // of an element
  std::uint64_t bytes = 0;  // of the whole; 0 for `name[]`, whose size the launch decides
  std::uint32_t alignment = 1;
  bool is_extern = false;
  std::vector<std::byte> initial;  // empty: zeros; shorter than `bytes`: the rest is zeros
  std::vector<Relocation> relocations;
  Position at;
};

struct ScopeBegin {};
struct ScopeEnd {};

// .loc: the instructions that follow came from this line of CUDA source.
struct Location {
  std::uint32_t file = 0, line = 0;
  std::uint32_t caller_file = 0, caller_line = 0;  // of an inlined function: where it was called; else 0
};

// A comment `//@ name`: a section of the program begins here, for those who draw its run. An empty name ends
// the one before.
struct Mark {
  std::string_view name;
};

using Statement = std::variant<Instruction, Label, Registers, Variable, ScopeBegin, ScopeEnd, Location, Mark>;

struct Parameter {
  std::string_view name;
  std::string_view type;
  std::uint64_t bytes = 0;
  std::uint32_t alignment = 1;
  std::uint64_t offset = 0;  // in the launch's parameter buffer
};

struct Entry {
  std::string_view name;
  Position at;
  std::vector<Parameter> parameters;
  std::uint64_t parameter_bytes = 0;
  std::uint32_t max_threads[3] = {};       // .maxntid, zeros when absent
  std::uint32_t required_threads[3] = {};  // .reqntid
  std::uint32_t min_ctas_per_sm = 0;       // .minnctapersm
  std::uint32_t max_registers = 0;         // .maxnreg
  std::uint32_t cluster[3] = {};           // .reqnctapercluster
  std::uint32_t max_cluster = 0;           // .maxclusterrank: CTAs, 0 when absent
  bool explicit_cluster = false;           // .explicitcluster: a launch must name its cluster
  std::vector<Statement> body;
};

// A .func, declared or defined.
struct Function {
  std::string_view name;
  Position at;
  std::vector<Parameter> results, parameters;
  bool is_defined = false;
  std::vector<Statement> body;
};

struct Module {
  std::string text;
  std::string_view version;  // "9.0"
  std::string_view target;   // "sm_100a"
  std::uint32_t address_size = 64;
  std::vector<std::string_view> files;  // .file, by its number; gaps are empty
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<Entry> entries;
};

}  // namespace flashback::emulator::ptx
