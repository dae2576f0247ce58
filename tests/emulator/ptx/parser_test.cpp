#include "emulator/ptx/parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>

namespace flashback::emulator::ptx {
namespace {

std::string quirks() {
  std::stringstream text;
  text << std::ifstream(FLASHBACK_SOURCE_DIR "/tests/emulator/ptx/quirks.ptx").rdbuf();
  return text.str();
}

std::unique_ptr<Module> parsed(const std::string& text) {
  ParseResult result = parse(text);
  EXPECT_EQ(result.error, "");
  return std::move(result.module);
}

// The statements of an entry with this body.
std::unique_ptr<Module> with_body(const std::string& body) {
  return parsed(".version 8.0\n.target sm_90\n.address_size 64\n.entry e() {\n" + body + "\n}\n");
}
const Instruction& instruction(const Module& module, std::size_t n) {
  return std::get<Instruction>(module.entries.at(0).body.at(n));
}

TEST(Parser, HeaderAndEntries) {
  const auto module = parsed(quirks());
  EXPECT_EQ(module->version, "9.0");
  EXPECT_EQ(module->target, "sm_100a");
  EXPECT_EQ(module->address_size, 64u);
  ASSERT_EQ(module->entries.size(), 2u);
  const Entry& first = module->entries[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.max_threads[0], 384u);
  EXPECT_EQ(first.max_threads[2], 1u);
  EXPECT_EQ(first.required_threads[0], 0u);
  EXPECT_EQ(first.min_ctas_per_sm, 1u);
  EXPECT_EQ(first.max_registers, 168u);
  EXPECT_EQ(module->entries[1].name, "second");
  ASSERT_EQ(module->functions.size(), 2u);
  EXPECT_EQ(module->functions[0].name, "vprintf");
  ASSERT_EQ(module->files.size(), 4u);
  EXPECT_EQ(module->files[1], "/a/first.cu");
  EXPECT_EQ(module->files[2], "");
  EXPECT_EQ(module->files[3], "/a/third.cuh");
}

TEST(Parser, ParametersLieAtTheirAlignment) {
  const auto module = parsed(quirks());
  const std::vector<Parameter>& p = module->entries[0].parameters;
  ASSERT_EQ(p.size(), 4u);
  EXPECT_EQ(p[0].offset, 0u);  // `.align 1` is the pointee's
  EXPECT_EQ(p[0].alignment, 8u);
  EXPECT_EQ(p[1].offset, 128u);
  EXPECT_EQ(p[1].bytes, 130u);
  EXPECT_EQ(p[2].offset, 258u);
  EXPECT_EQ(p[3].offset, 260u);
  EXPECT_EQ(module->entries[0].parameter_bytes, 264u);
}

TEST(Parser, VariablesWithInitialisers) {
  const auto module = parsed(quirks());
  auto variable = [&](std::string_view name) -> const Variable& {
    for (const Variable& v : module->variables) {
      if (v.name == name) return v;
    }
    throw std::out_of_range("no such variable");
  };
  EXPECT_EQ(variable("counter").bytes, 4u);
  EXPECT_EQ(variable("counter").initial[0], std::byte(5));
  EXPECT_EQ(variable("table").space, Space::kConstant);
  EXPECT_EQ(variable("table").bytes, 16u);
  ASSERT_EQ(variable("table").initial.size(), 9u);
  EXPECT_EQ(variable("table").initial[8], std::byte(0x41));
  ASSERT_EQ(variable("pointer").relocations.size(), 1u);
  EXPECT_EQ(variable("pointer").relocations[0].name, "counter");
  ASSERT_EQ(variable("pointers").relocations.size(), 2u);
  EXPECT_EQ(variable("pointers").relocations[1].offset, 8u);
  EXPECT_EQ(variable("pointers").relocations[1].addend, 4);
  float floats[3];
  std::memcpy(floats, variable("constants").initial.data(), sizeof floats);
  EXPECT_EQ(floats[0], 1.0f);
  EXPECT_EQ(floats[1], 1.5f);
  EXPECT_EQ(floats[2], -2.0f);
  EXPECT_EQ(variable("matrix").bytes, 16u);
  EXPECT_EQ(variable("matrix").initial[12], std::byte(4));
  EXPECT_TRUE(variable("raw").is_extern);
  EXPECT_EQ(variable("raw").bytes, 0u);
  EXPECT_EQ(variable("raw").alignment, 16u);
}

TEST(Parser, OpcodesGluedToTheirOperands) {
  const auto module = with_body(
      "tcgen05.ld.sync.aligned.32x32b.x2.b32{%r1, %r2},[%r3];\n"
      "tcgen05.st.sync.aligned.32x32b.x1.b32[%r3],{%r1};");
  const Instruction& load = instruction(*module, 0);
  EXPECT_EQ(load.opcode, "tcgen05.ld.sync.aligned.32x32b.x2.b32");
  ASSERT_EQ(load.operands.size(), 2u);
  EXPECT_EQ(load.operands[0].kind, Operand::Kind::kBraces);
  EXPECT_EQ(load.operands[0].parts.size(), 2u);
  EXPECT_EQ(load.operands[1].kind, Operand::Kind::kBrackets);
  EXPECT_EQ(instruction(*module, 1).opcode, "tcgen05.st.sync.aligned.32x32b.x1.b32");
}

TEST(Parser, LabelsGuardsAndScopes) {
  const auto module = with_body("{ LAB: elect.sync _|%p1, -1;\n@!%p1 bra.uni LAB; }");
  const auto& body = module->entries[0].body;
  ASSERT_EQ(body.size(), 5u);
  EXPECT_TRUE(std::holds_alternative<ScopeBegin>(body[0]));
  EXPECT_EQ(std::get<Label>(body[1]).name, "LAB");
  const Instruction& elect = std::get<Instruction>(body[2]);
  ASSERT_EQ(elect.operands[0].kind, Operand::Kind::kPair);
  EXPECT_EQ(elect.operands[0].parts[0].kind, Operand::Kind::kSink);
  EXPECT_EQ(elect.operands[0].parts[1].name, "%p1");
  const Instruction& branch = std::get<Instruction>(body[3]);
  EXPECT_EQ(branch.guard, "%p1");
  EXPECT_TRUE(branch.guard_negated);
  EXPECT_EQ(branch.opcode, "bra.uni");
  EXPECT_EQ(branch.at.line, 6u);
  EXPECT_TRUE(std::holds_alternative<ScopeEnd>(body[4]));
}

TEST(Parser, AddressesWithDisplacementsAndCoordinates) {
  const auto module = with_body("x.y [%r1+-4], [%r1-8], [name+0x10], [%rd6, {%r2, 3}], [64], v+12;");
  const std::vector<Operand>& o = instruction(*module, 0).operands;
  ASSERT_EQ(o.size(), 6u);
  EXPECT_EQ(o[0].parts[0].displacement, -4);
  EXPECT_EQ(o[1].parts[0].displacement, -8);
  EXPECT_EQ(o[2].parts[0].name, "name");
  EXPECT_EQ(o[2].parts[0].displacement, 16);
  ASSERT_EQ(o[3].parts.size(), 2u);
  EXPECT_EQ(o[3].parts[1].kind, Operand::Kind::kBraces);
  EXPECT_EQ(o[3].parts[1].parts[1].bits, 3u);
  EXPECT_EQ(o[4].parts[0].bits, 64u);
  EXPECT_EQ(o[5].displacement, 12);
}

TEST(Parser, Literals) {
  const auto module =
      with_body("x 10, -1, 0x1F, 017, 0b101, 42U, 0f3F800000, 0d3FF0000000000000, 1.5, -2e3, !%p1, 0;");
  const std::vector<Operand>& o = instruction(*module, 0).operands;
  ASSERT_EQ(o.size(), 12u);
  const std::uint64_t integers[] = {10, ~std::uint64_t{0}, 31, 15, 5, 42};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(o[i].kind, Operand::Kind::kInteger);
    EXPECT_EQ(o[i].bits, integers[i]) << i;
  }
  EXPECT_EQ(o[6].kind, Operand::Kind::kFloat);
  EXPECT_EQ(o[6].bits, 0x3f800000u);
  EXPECT_EQ(o[7].kind, Operand::Kind::kDouble);
  EXPECT_EQ(std::bit_cast<double>(o[8].bits), 1.5);
  EXPECT_EQ(std::bit_cast<double>(o[9].bits), -2000.0);
  EXPECT_TRUE(o[10].negated);
  EXPECT_EQ(o[11].bits, 0u);
}

TEST(Parser, RegistersAndLocations) {
  const auto module = with_body(
      ".reg .b32 %r<40>, one;\n.loc 2 57 1, function_name $L0+4, inlined_at 1 18 3\n.pragma \"nounroll\";");
  const auto& body = module->entries[0].body;
  ASSERT_EQ(body.size(), 3u);
  EXPECT_EQ(std::get<Registers>(body[0]).prefix, "%r");
  EXPECT_EQ(std::get<Registers>(body[0]).count, 40u);
  EXPECT_EQ(std::get<Registers>(body[1]).prefix, "one");
  EXPECT_EQ(std::get<Registers>(body[1]).count, 0u);
  EXPECT_EQ(std::get<Location>(body[2]).file, 2u);
  EXPECT_EQ(std::get<Location>(body[2]).line, 57u);
}

struct Fault {
  const char* text;
  const char* sentence;
};

class ParserFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(ParserFaults, AreSentencesWithTheirPlace) {
  const ParseResult result = parse(GetParam().text);
  EXPECT_EQ(result.module, nullptr);
  EXPECT_EQ(result.error, GetParam().sentence);
}

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
INSTANTIATE_TEST_SUITE_P(
    Parser, ParserFaults,
    ::testing::Values(
        Fault{"", "PTX line 1, column 1: the text is no PTX: it has no `.version`"},
        Fault{"int main() {}",
              "PTX line 1, column 1: expected a directive such as .version, .visible or .entry, found `int`"},
        Fault{".version 8.0\n.target sm_90\n.address_size 32",
              "PTX line 3, column 1: the address size must be 64"},
        Fault{HEAD ".entry e() {\n  mov.u32 %r1 %r2;\n}",
              "PTX line 5, column 15: expected `,` or `;` after an operand of `mov.u32`, found `%r2`"},
        Fault{HEAD ".entry e() {\n  mov.u32 %r1, ;\n}",
              "PTX line 5, column 16: expected an operand, found `;`"},
        Fault{HEAD ".entry e() {\n  ld.u32 %r1, [%r2;\n}",
              "PTX line 5, column 19: expected `]` after an operand, found `;`"},
        Fault{HEAD ".entry e() {\n  {\n  ret;\n",
              "PTX line 5, column 3: the `{` here has no `}` before the end of the text"},
        Fault{HEAD ".entry e() {\n  ret;\n",
              "PTX line 6, column 1: expected the `}` of the entry, found the end of the text"},
        Fault{HEAD ".entry e() {\n  .reg .q32 %r1;\n}",
              "PTX line 5, column 8: `.q32` is no type of a register; expected .pred, .b16 ... .f64"},
        Fault{HEAD ".entry e() {\n  .reg .b32 %r<0>;\n}",
              "PTX line 5, column 13: 0 registers `%r`: expected 1 to 1000000"},
        Fault{HEAD ".entry e() {\n  .branchtargets A;\n}",
              "PTX line 5, column 3: the directive `.branchtargets` is not known inside an entry; known are "
              ".reg, .loc, "
              ".pragma, .shared, .local, .param, .global, .const"},
        Fault{HEAD ".entry e() {\n  mov.f32 %f1, 0f3F80;\n}",
              "PTX line 5, column 16: the literal `0f3F80` must have 8 hexadecimal digits"},
        Fault{HEAD ".entry e() {\n  mov.b64 %r1, 0x1ffffffffffffffff;\n}",
              "PTX line 5, column 16: the literal does not fit into 64 bits"},
        Fault{HEAD ".entry e() {\n  mov.b32 %r1, 12ab;\n}",
              "PTX line 5, column 16: the literal `12ab` is not a number"},
        Fault{HEAD ".global .b8 x[2] = {1, 2, 3};",
              "PTX line 4, column 27: `x` of 2 bytes has more initialisers than that"},
        Fault{HEAD ".global .align 3 .b8 x[2];",
              "PTX line 4, column 9: the alignment 3 is not a power of two up to 4096"},
        Fault{HEAD "/* never", "PTX line 4, column 1: the comment that starts here does not end"},
        Fault{HEAD ".file 1 \"open\n",
              "PTX line 4, column 9: the string that starts here does not end on its line"}));

// A text that ends anywhere is refused with a sentence; only whole items make a module.
TEST(Parser, TruncatedTextIsAnError) {
  const std::string text = quirks();
  int modules = 0;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const ParseResult result = parse(std::string_view(text).substr(0, n));
    ASSERT_NE(result.module == nullptr, result.error.empty()) << n;
    if (result.module) {
      ++modules;
    } else {
      ASSERT_EQ(result.error.rfind("PTX line ", 0), 0u) << result.error;
    }
    const bool inside_entry = n > text.find(".local .align") && n < text.find(".entry second") - 2;
    ASSERT_FALSE(inside_entry && result.module) << n;
  }
  EXPECT_GT(modules, 0);
}

// Damaged text must not break the parser, whatever it makes of it.
TEST(Parser, DamagedTextIsSurvived) {
  const std::string text = quirks();
  std::uint32_t random = 1;
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525 + 1013904223;
      const std::size_t at = random % damaged.size();
      random = random * 1664525 + 1013904223;
      damaged[at] = "{}[]();,.:|!@<>+-\"/*% \n09afx_"[(random >> 8) % 29];
    }
    const ParseResult result = parse(damaged);
    ASSERT_NE(result.module == nullptr, result.error.empty());
  }
}

}  // namespace
}  // namespace flashback::emulator::ptx
