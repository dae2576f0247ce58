// Random programs, run by the machine on allocated slots and by a plain interpreter on named variables:
// loops, branches and guards that part the lanes must not make two live values share a slot.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "emulator/machine/loaded_module.h"
#include "emulator/machine/machine.h"

namespace flashback::emulator {
namespace {

constexpr int kLanes = 32;
using Lanes = std::array<std::uint32_t, kLanes>;

class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {
    // Variables that the whole program reads and writes.
    for (int i = 1; i < kOuter; ++i) emit_definition(new_variable());
  }

  void run() {
    for (int i = 0; i < 6; ++i) emit_statement(0);
    // What remains of every variable that was ever written, mixed into one word.
    for (int i = 1; i < kOuter; ++i) {
      text_.push_back({fmt::format("mad.lo.u32 v0, v0, 31, v{};", i), 0, i, 0, Kind::kFinal});
    }
  }

  std::string ptx() const;
  Lanes expected() const;

 private:
  static constexpr int kOuter = 6;
  enum class Kind { kAssign, kGuarded, kFinal, kIf, kEnd, kLoop, kLoopEnd };
  // A piece of the text, and what the interpreter must know of it.
  struct Line {
    std::string text;
    int d, a, b;
    Kind kind;
    std::uint32_t constant = 0;
  };

  int new_variable() { return variables_++; }
  int some(int count) { return int(random_() % std::uint32_t(count)); }
  // A variable that has a value on every path to here: an outer one or a temporary of this block.
  int some_source() {
    const int n = some(kOuter + int(temporaries_.size()));
    return n < kOuter ? n : temporaries_[n - kOuter];
  }
  void emit_definition(int variable) {
    const std::uint32_t constant = std::uint32_t(random_());
    text_.push_back(
        {fmt::format("add.u32 v{}, v0, {};", variable, constant), variable, 0, 0, Kind::kAssign, constant});
  }
  void emit_statement(int depth);

  std::mt19937 random_;
  int variables_ = 1;  // v0 starts as the lane's number
  std::vector<int> temporaries_;
  std::vector<Line> text_;
  int labels_ = 0;
};

void RandomProgram::emit_statement(int depth) {
  const int choice = some(depth < 3 ? 8 : 5);
  if (choice < 3) {  // a temporary with a short life, or an assignment to an outer variable
    const int d = some(2) == 0 ? 1 + some(kOuter - 1) : new_variable();
    const int a = some_source(), b = some_source();
    text_.push_back(
        {fmt::format("xor.b32 v{0}, v{1}, 0x9e3779b9;\nadd.u32 v{0}, v{0}, v{2};", d, a, b == d ? a : b), d,
         a, b == d ? a : b, Kind::kAssign});
    if (d >= kOuter) temporaries_.push_back(d);
  } else if (choice < 5) {  // under a guard that parts the lanes
    const int d = 1 + some(kOuter - 1), a = some_source(), b = some_source();
    const std::uint32_t bit = std::uint32_t(some(5));
    text_.push_back(
        {fmt::format("and.b32 bits, v{}, {};\nsetp.ne.u32 guard, bits, 0;\n@guard add.u32 v{}, v{}, 77;", b,
                     1u << bit, d, a),
         d, a, b, Kind::kGuarded, bit});
  } else if (choice < 7) {  // a block that some lanes skip
    const int a = some_source(), label = labels_++;
    const std::uint32_t bit = std::uint32_t(some(5));
    text_.push_back({fmt::format("and.b32 bits, v{}, {};\nsetp.ne.u32 guard, bits, 0;\n@guard bra L{};", a,
                                 1u << bit, label),
                     0, a, 0, Kind::kIf, bit});
    const std::vector<int> outside = temporaries_;
    for (int i = 1 + some(3); i > 0; --i) emit_statement(depth + 1);
    temporaries_ = outside;
    text_.push_back({fmt::format("L{}:", label), 0, 0, 0, Kind::kEnd});
  } else {  // a loop with as many rounds as the lane's number says, and a value that only some rounds renew
    const int label = labels_++, counter = new_variable(), carried = new_variable();
    const std::uint32_t bit = std::uint32_t(some(2));
    emit_definition(carried);
    text_.push_back({fmt::format("and.b32 v{}, v0, 3;\nL{}:", counter, label), counter, 0, 0, Kind::kLoop});
    text_.push_back(
        {fmt::format("and.b32 bits, v{0}, {1};\nsetp.ne.u32 guard, bits, 0;\n@guard add.u32 v{2}, v{0}, 77;",
                     counter, 1u << bit, carried),
         carried, counter, counter, Kind::kGuarded, bit});
    const int d = 1 + some(kOuter - 1);
    text_.push_back({fmt::format("xor.b32 v{0}, v{1}, 0x9e3779b9;\nadd.u32 v{0}, v{0}, v{1};", d, carried), d,
                     carried, carried, Kind::kAssign});
    const std::vector<int> outside = temporaries_;
    for (int i = 1 + some(3); i > 0; --i) emit_statement(depth + 1);
    temporaries_ = outside;
    text_.push_back(
        {fmt::format("setp.ne.u32 guard, v{0}, 0;\nsub.u32 v{0}, v{0}, 1;\n@guard bra L{1};", counter, label),
         counter, 0, 0, Kind::kLoopEnd});
  }
}

std::string RandomProgram::ptx() const {
  std::string text = fmt::format(
      ".version 8.0\n.target sm_100a\n.address_size 64\n.entry e(.param .u64 out) {{\n"
      ".reg .b32 v<{}>, bits, thread;\n.reg .b64 address;\n.reg .pred guard;\nmov.u32 v0, %laneid;\n",
      variables_);
  for (const Line& line : text_) text += line.text + '\n';
  return text +
         "ld.param.u64 address, [out];\nmov.u32 thread, %tid.x;\nmad.wide.u32 address, thread, 4, address;\n"
         "st.global.u32 [address], v0;\nret;\n}\n";
}

// Each lane by itself, as the manual defines a thread.
Lanes RandomProgram::expected() const {
  Lanes result;
  for (int l = 0; l < kLanes; ++l) {
    std::vector<std::uint32_t> v(variables_, 0);
    v[0] = std::uint32_t(l);
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const Line& line = text_[i];
      const bool bit = v[line.kind == Kind::kIf ? line.a : line.b] >> line.constant % 32 & 1;
      switch (line.kind) {
        case Kind::kAssign:
          if (line.constant != 0) {
            v[line.d] = v[0] + line.constant;
          } else {
            v[line.d] = v[line.a] ^ 0x9e3779b9u;
            v[line.d] += v[line.b];
          }
          break;
        case Kind::kGuarded:
          if (bit) v[line.d] = v[line.a] + 77;
          break;
        case Kind::kFinal:
          v[0] = v[0] * 31 + v[line.a];
          break;
        case Kind::kIf:
          for (int depth = bit ? 1 : 0; depth > 0;) {
            ++i;
            depth += text_[i].kind == Kind::kIf ? 1 : text_[i].kind == Kind::kEnd ? -1 : 0;
          }
          break;
        case Kind::kLoop:
          v[line.d] = v[0] & 3;
          break;
        case Kind::kLoopEnd:
          if (v[line.d]-- != 0) {
            while (!(text_[i].kind == Kind::kLoop && text_[i].d == line.d)) --i;
          }
          break;
        default:
          break;
      }
    }
    result[l] = v[0];
  }
  return result;
}

class OneBuffer : public GlobalMemory {
 public:
  Range range_of(Address a) const override {
    const Range range{address(), address() + sizeof lanes};
    return range.holds(a, 1) ? range : Range{};
  }
  Address address() const { return reinterpret_cast<Address>(lanes.data()); }
  Lanes lanes{};
};

TEST(Allocation, RandomProgramsKeepTheirValues) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    RandomProgram random(seed);
    random.run();
    const std::string ptx = random.ptx();
    OneBuffer memory;
    const Address out = memory.address();
    std::unique_ptr<LoadedModule> module;
    ASSERT_TRUE(LoadedModule::load(ptx, &module).ok()) << ptx;
    Launch launch;
    launch.entry = "e";
    launch.block.x = kLanes;
    launch.parameters = std::as_bytes(std::span(&out, 1));
    const Status status = Machine({}).launch(*module, launch, memory);
    ASSERT_TRUE(status.ok()) << status.sentence() << "\n" << ptx;
    ASSERT_EQ(memory.lanes, random.expected()) << "seed " << seed << "\n" << ptx;
  }
}

}  // namespace
}  // namespace flashback::emulator
