// The decoder, with a small table whose bodies do nothing: what matters is what they would be given.
#include "emulator/program/decode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/ptx/parser.h"

namespace flashback::emulator {
namespace {

void nothing(Warp&, const Step&, LaneMask) {}
Body any(Match&) {
  return nothing;
}
Body only_ftz(Match& match) {
  return match.has(".ftz") ? nothing : nullptr;
}
Body shift_by_width(Match& match) {
  match.step().immediate = 10 * match.bytes('d') + match.list_size();
  return nothing;
}

constexpr Row kRows[] = {
    {"mov.b32", "d:r32, a:r32", any},
    {"mov.b64", "d:r64, a:r64", any},
    {"mov.pred", "d:p, a:p", any},
    {"mov.b64", "d:r64, list:{r32}x2", any},
    {"mov.b64", "list:{r32}x2, a:r64", any},
    {"add.s32", "d:r32, a:r32, b:r32", any},
    {"add.s64", "d:r64, a:r64, b:r64", any},
    {"add{.ftz}.f32", "d:r32, a:r32, b:r32", any},
    {"mul{.ftz}.f32", "d:r32, a:r32, b:r32", only_ftz},
    {"not.pred", "d:p, a:p", any},
    {"setp.eq.s32", "d:p|l:p?, a:r32, b:r32, !c:p?", any},
    {"shfl.sync.idx.b32", "d:r32|l:p?, a:r32, b:r32, c:r32, l:r32", any},
    {"copy", "[d:r32], [a:r64, list:{r32}], [b:r32], c:r64?", any},
    {"mma", "[d:r32], a:r64, b:r64, c:r32, list:{r32}x4?, l:p, i:imm?", any},
    {"mma", "[d:r32], [a:r32], b:r64, c:r32, list:{r32}x4?, l:p, i:imm?", any},
    {"st.b32", "[a], b:r32", any},
    {"ld{.volatile}{.global|.shared}.b32", "d:r, [a]", shift_by_width},
    {"atom{.global|.shared}.add.u32", "d:r32, [a], b:r32", any},
    {"tcgen05.ld.x2", "list:{r32}, [a:r32]", any},
    {"tcgen05.wait::ld.sync", "", any},
    {"bra", "@:label", any},
    {"ret", "", any},
};

DecodeResult decode_text(const std::string& text, std::string_view entry = "e") {
  const ptx::ParseResult parsed = ptx::parse(text);
  EXPECT_EQ(parsed.error, "");
  std::string error;
  const ModuleMemory memory(*parsed.module, &error);
  EXPECT_EQ(error, "");
  const std::span<const Row> families[] = {kRows};
  return decode(*parsed.module, memory, entry, families);
}

constexpr const char* kHead =
    ".version 8.0\n.target sm_100a\n.address_size 64\n.extern .shared .align 16 .b8 raw[];\n"
    ".shared .align 8 .b8 module_wide[24];\n.extern .func (.param .b32 r) vprintf (.param .b64 a, .param "
    ".b64 b); .func doubled(.param .b64 x) { ret; }\n"
    ".entry e(.param .u64 e_param_0, .param .align 64 .b8 e_param_1[128]) {\n"           // line 7
    ".reg .b32 %r<10>, x;\n.reg .b64 %rd<10>;\n.reg .pred %p<4>;\n.reg .b16 %rs<4>;\n";  // the body starts in
                                                                                         // line 12

DecodeResult decode_body(const std::string& body) {
  return decode_text(kHead + body + "\n}\n");
}

std::unique_ptr<Program> program(const std::string& body) {
  DecodeResult result = decode_body(body);
  EXPECT_EQ(result.error, "");
  return std::move(result.program);
}

const Preset* preset_at(const Program& p, Slot slot) {
  auto found =
      std::find_if(p.presets.begin(), p.presets.end(), [&](const Preset& x) { return x.slot == slot; });
  return found == p.presets.end() ? nullptr : &*found;
}

TEST(Decode, ImmediatesBecomePresetsOnce) {
  const auto p =
      program("add.s32 %r1, %r2, 5;\nadd.s32 %r3, %r1, 5;\nadd.s32 %r3, %r3, -1;\nadd.s32 x, %r3, %r3;");
  EXPECT_EQ(p->code[0].b, p->code[1].b);
  EXPECT_NE(p->code[0].b, p->code[2].b);
  const Preset* five = preset_at(*p, p->code[0].b);
  ASSERT_NE(five, nullptr);
  EXPECT_EQ(five->kind, Preset::Kind::kBits);
  EXPECT_EQ(five->value, 5u);
  EXPECT_EQ(five->bytes, 4);
  EXPECT_EQ(preset_at(*p, p->code[2].b)->value, 0xffffffffu);
  EXPECT_EQ(preset_at(*p, p->code[3].a), nullptr);
  EXPECT_EQ(p->code[3].a, p->code[2].d);
}

TEST(Decode, SpecialRegistersVariablesAndParameters) {
  const auto p = program(
      ".shared .align 16 .b8 first[20];\n.shared .align 8 .b8 second[8];\n.local .align 8 .b8 depot[12];\n"
      "mov.b32 %r1, %tid.y;\nmov.b32 %r1, second;\nmov.b64 %rd1, second+4;\nmov.b32 %r1, module_wide;\n"
      "mov.b32 %r1, raw;\nmov.b64 %rd1, e_param_1+8;\nmov.b64 %rd1, depot;\nmov.b32 %r1, WARP_SZ;");
  auto source = [&](int n) { return *preset_at(*p, p->code[n].a); };
  EXPECT_EQ(source(0).kind, Preset::Kind::kSpecial);
  EXPECT_EQ(Special(source(0).value), Special::kTidY);
  EXPECT_EQ(source(1).kind, Preset::Kind::kShared);
  EXPECT_EQ(source(1).value, 24u);
  EXPECT_EQ(source(1).bytes, 4);
  EXPECT_EQ(source(2).value, 28u);
  EXPECT_EQ(source(2).bytes, 8);
  EXPECT_EQ(source(3).value, 32u);  // placed where it is first used
  EXPECT_EQ(p->static_shared_bytes, 56u);
  EXPECT_EQ(source(4).value, 1024u);  // dynamic shared memory
  EXPECT_EQ(source(5).kind, Preset::Kind::kParameter);
  EXPECT_EQ(source(5).value, 72u);
  EXPECT_EQ(p->parameter_bytes, 192u);
  EXPECT_EQ(source(6).kind, Preset::Kind::kLocal);
  EXPECT_EQ(p->local_bytes, 16u);
  EXPECT_EQ(source(7).value, 32u);
}

TEST(Decode, DynamicSharedMemoryAloneStartsAtZero) {
  const auto p = program("mov.b32 %r1, raw;");
  EXPECT_EQ(preset_at(*p, p->code[0].a)->value, 0u);
  EXPECT_EQ(p->static_shared_bytes, 0u);
}

TEST(Decode, TheFirstAddressOwnsTheImmediate) {
  const auto p = program("copy [%r1+8], [%rd1+16, {%r2, %r3}], [%r4-4];");
  ASSERT_EQ(p->code.size(), 4u);  // two sums, the copy, the return
  const Step& copy = p->code[2];
  EXPECT_EQ(copy.immediate, 8);
  EXPECT_EQ(copy.a, p->code[0].d);
  EXPECT_EQ(preset_at(*p, p->code[0].b)->value, 16u);
  EXPECT_EQ(copy.b, p->code[1].d);
  EXPECT_EQ(preset_at(*p, p->code[1].b)->value, 0xfffffffcu);
  EXPECT_EQ(copy.c, kNone);
  ASSERT_EQ(copy.list_size, 2);
  EXPECT_NE(copy.list[0], copy.list[1]);
}

TEST(Decode, ALiteralOwnsTheImmediate) {
  const auto p = program(
      "mma [%r1+4], %rd1, %rd2, %r2, {%r3, %r4, %r5, %r6}, %p1, 7;\nmma [%r1], [%r2], %rd2, %r2, %p1;");
  ASSERT_EQ(p->code.size(), 4u);
  const Step& first = p->code[1];
  EXPECT_EQ(first.immediate, 7);
  EXPECT_EQ(first.d, p->code[0].d);
  ASSERT_EQ(first.list_size, 5);
  const Step& second = p->code[2];
  EXPECT_EQ(second.immediate, 0);
  ASSERT_EQ(second.list_size, 5);  // positions are fixed
  EXPECT_EQ(second.list[0], kNone);
  EXPECT_EQ(second.list[3], kNone);
  EXPECT_NE(second.list[4], kNone);
}

TEST(Decode, PairsSinksAndAbsentOperands) {
  const auto p = program(
      "shfl.sync.idx.b32 %r1|%p1, %r2, 3, 31, -1;\nshfl.sync.idx.b32 _|%p1, %r2, 3, 31, -1;\n"
      "shfl.sync.idx.b32 %r1, %r2, 3, 31, -1;\nmov.b64 {_, %r3}, %rd1;\nsetp.eq.s32 %p1, %r1, 0;");
  EXPECT_NE(p->code[0].list[0], kNone);
  EXPECT_EQ(p->code[1].d, kNone);
  EXPECT_NE(p->code[1].list[0], kNone);
  EXPECT_EQ(p->code[2].list[0], kNone);
  EXPECT_EQ(preset_at(*p, p->code[2].list[1])->value, 0xffffffffu);
  EXPECT_EQ(p->code[3].list[0], kNone);
  EXPECT_NE(p->code[3].list[1], kNone);
  EXPECT_EQ(p->code[4].c, kNone);
}

TEST(Decode, ANegatedPredicateIsComputedBefore) {
  const auto p = program("setp.eq.s32 %p1, %r1, 0, !%p2;\nmov.pred %p3, -1;");
  ASSERT_EQ(p->code.size(), 4u);
  EXPECT_EQ(p->forms[p->code[0].form], "not.pred");
  EXPECT_EQ(p->code[1].c, p->code[0].d);
  EXPECT_EQ(preset_at(*p, p->code[2].a)->bytes, 0);
  EXPECT_EQ(preset_at(*p, p->code[2].a)->value, kAllLanes);
}

TEST(Decode, GuardsLinesFormsAndSource) {
  const auto p = program(
      ".loc 1 33 0\n@!%p2 add.f32 %r1, %r2, %r3;\nadd.ftz.f32 %r1, %r2, %r3;\n.loc 2 7 0\nadd.f32 %r1, %r2, "
      "%r3;");
  EXPECT_NE(p->code[0].guard, kNone);
  EXPECT_TRUE(p->code[0].guard_negated);
  EXPECT_EQ(p->code[0].line, 13u);
  EXPECT_EQ(p->forms[p->code[0].form], "add.f32");
  EXPECT_EQ(p->forms[p->code[1].form], "add.ftz.f32");
  EXPECT_EQ(p->code[2].form, p->code[0].form);
  EXPECT_EQ(p->source[1].line, 33u);
  EXPECT_EQ(p->source[2].file, 2u);
}

TEST(Decode, ScopesHideNamesAndLabels) {
  const auto p = program(
      "mov.b32 x, 1;\n{ .reg .b64 x; mov.b64 x, %rd1; L: bra L; }\n{ L: bra L; bra OUT; }\nadd.s32 x, x, "
      "x;\nOUT: ret;");
  EXPECT_EQ(p->code[2].target, 2u);
  EXPECT_EQ(p->code[3].target, 3u);
  EXPECT_EQ(p->code[4].target, 6u);
  EXPECT_EQ(p->code[5].d, p->code[0].d);
}

TEST(Decode, ControlThatRunsOffTheEndReturns) {
  const auto p = program("bra END;\nEND:");
  ASSERT_EQ(p->code.size(), 2u);
  EXPECT_EQ(p->code[0].target, 1u);
  EXPECT_EQ(p->forms[p->code[1].form], "ret");
}

TEST(Decode, SelectSeesWidthsAndLists) {
  const auto p = program("ld.b32 %r1, [%r2];\nld.b32 %rd1, [%rd2];\nld.b32 %rs1, [%rd2+4];");
  EXPECT_EQ(p->code[0].immediate, 40);
  EXPECT_EQ(p->code[1].immediate, 80);
  EXPECT_EQ(p->code[2].immediate, 20);
}

TEST(Decode, LaunchBounds) {
  const std::string head = ".version 8.0\n.target sm_100a\n.address_size 64\n.entry e() ";
  auto bounds = [&](const std::string& directives) {
    DecodeResult result = decode_text(head + directives + "{ ret; }");
    EXPECT_EQ(result.error, "");
    return std::pair(result.program->max_threads, result.program->registers_at_launch);
  };
  EXPECT_EQ(bounds(""), std::pair(0u, 0u));
  EXPECT_EQ(bounds(".maxntid 384, 1, 1 "), std::pair(384u, 168u));
  EXPECT_EQ(bounds(".reqntid 16, 8 .maxntid 512 "), std::pair(128u, 248u));
  EXPECT_EQ(bounds(".maxntid 256 .minnctapersm 2 "), std::pair(256u, 128u));
  EXPECT_EQ(bounds(".maxntid 256 .maxnreg 100 "), std::pair(256u, 96u));
}

TEST(Decode, OnlyReadsOfOtherCtasCommunicate) {
  EXPECT_FALSE(program("ld.global.b32 %r1, [%rd1];")->communicates);
  EXPECT_FALSE(program("ld.volatile.shared.b32 %r1, [%rd1];")->communicates);
  EXPECT_FALSE(program("atom.shared.add.u32 %r1, [%r2], 1;")->communicates);
  EXPECT_TRUE(program("atom.global.add.u32 %r1, [%rd2], 1;")->communicates);
  EXPECT_TRUE(program("atom.add.u32 %r1, [%rd2], 1;")->communicates);
  EXPECT_TRUE(program("ld.volatile.b32 %r1, [%rd1];")->communicates);
}

struct Fault {
  const char* body;
  const char* sentence;
};
class DecodeFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(DecodeFaults, AreSentencesWithTheirLine) {
  const DecodeResult result = decode_body(GetParam().body);
  EXPECT_EQ(result.program, nullptr);
  EXPECT_EQ(result.error, GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(
    Decode, DecodeFaults,
    ::testing::Values(
        Fault{"ret;\nfrobnicate.b32 %r1;", "PTX line 13: the opcode `frobnicate.b32` is not executed"},
        Fault{"add.sat.f32 %r1, %r2, %r3;",
              "PTX line 12: the opcode `add.sat.f32` is not executed; the nearest forms are  "
              "add.s32  add.s64  add{.ftz}.f32"},
        Fault{"mul.f32 %r1, %r2, %r3;",
              "PTX line 12: the opcode `mul.f32` has the form `mul{.ftz}.f32`, but this "
              "combination of modifiers and "
              "operands does not exist"},
        Fault{"add.s32 %r1, %r2, %r3, %r4;",
              "PTX line 12: the operands of `add.s32` do not fit: 4 operands stand there, the "
              "form has no place for "
              "number 4 (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"add.s32 %r1, %r2;",
              "PTX line 12: the operands of `add.s32` do not fit: 2 operands stand there, "
              "`b:r32` is missing (operands "
              "of the form: d:r32, a:r32, b:r32)"},
        Fault{"add.s32 %r1, %rs2, %r3;",
              "PTX line 12: the operands of `add.s32` do not fit: operand 2: `%rs2` is a "
              "register of 16 bits, the form "
              "takes 32 bits (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"add.s32 %r1, %r99, %r3;",
              "PTX line 12: the operands of `add.s32` do not fit: operand 2: `%r99` is neither "
              "a declared register nor "
              "a special register known here (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"add.s32 5, %r2, %r3;",
              "PTX line 12: the operands of `add.s32` do not fit: operand 1: it is a literal, "
              "and the instruction "
              "writes it (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"add.s32 %r1, %r2, 0x1ffffffff;",
              "PTX line 12: the operands of `add.s32` do not fit: operand 3: the literal "
              "8589934591 does not fit into "
              "32 bits (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"add.s32 %r1, _, %r3;",
              "PTX line 12: the operands of `add.s32` do not fit: operand 2: it is the sink "
              "`_`, and the instruction "
              "reads it (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"st.b32 %r1, %r2;",
              "PTX line 12: the operands of `st.b32` do not fit: operand 1: it is a name, the "
              "form has `[a]` there "
              "(operands of the form: [a], b:r32)"},
        Fault{"@%r1 ret;", "PTX line 12: the guard `%r1` of `ret` is no declared predicate"},
        Fault{"bra NOWHERE;",
              "PTX line 12: `bra` branches to `NOWHERE`, a label that no enclosing scope has"},
        Fault{"L: ret;\nL: ret;", "PTX line 13: the label `L` stands twice in one scope"},
        Fault{".reg .b32 x;", "PTX line 12: `x` is declared twice in one scope"},
        Fault{".reg .b128 y;\nadd.s32 %r1, %r2, y;",
              "PTX line 13: the operands of `add.s32` do not fit: operand 3: `y` is a register of 128 bits, "
              "the "
              "form takes 32 bits (operands of the form: d:r32, a:r32, b:r32)"},
        Fault{"{\n.param .b32 r;\n.param .b32 q;\ncall.uni (r), vprintf, (q, q);\n}",
              "PTX line 15: the function `vprintf` is called, but its module does not define it "
              "and the emulator does not provide it"},
        Fault{"{\n.param .b32 q;\ncall doubled, (q);\n}",
              "PTX line 14: `q` is given for `x`, which takes a .param variable of 8 bytes"},
        Fault{"call.uni (r), vprintf, (q);",
              "PTX line 12: the call of `vprintf` has 1 results and 1 arguments; the function has "
              "1 and 2"},
        Fault{"call nowhere;", "PTX line 12: the function `nowhere` is not declared"},
        Fault{".global .b32 g;",
              "PTX line 12: `g` is declared inside an entry; variables in global and constant memory "
              "stand at the level of the module"}));

TEST(Decode, AnUnknownEntryIsNamedWithThoseThatExist) {
  const std::string head = ".version 8.0\n.target sm_100a\n.address_size 64\n";
  EXPECT_EQ(decode_text(head + ".entry a() { ret; }\n.entry b() { ret; }\n", "c").error,
            "the PTX has no entry `c`; it has `a`, `b`");
  EXPECT_EQ(decode_text(head, "c").error, "the PTX has no entry `c`; it has none");
}

// Steps that may meet a load of tensor memory whose registers have not arrived.
std::vector<int> marked(const std::string& body) {
  const auto p = program(body);
  std::vector<int> steps;
  for (std::size_t i = 0; i < p->code.size(); ++i) {
    if (p->code[i].touches_pending_load) steps.push_back(int(i));
  }
  return steps;
}

TEST(PendingLoads, TheFirstUseOfARegisterIsMarked) {
  // The use of %r1 finishes the whole load, so that of %r2 finds it finished.
  EXPECT_EQ(marked("tcgen05.ld.x2 {%r1, %r2}, [%r3];\nadd.s32 %r4, %r5, 1;\nadd.s32 %r4, %r1, 1;\nadd.s32 "
                   "%r4, %r2, 1;"),
            (std::vector<int>{2}));
}

TEST(PendingLoads, AWaitEndsThem) {
  EXPECT_EQ(marked("tcgen05.ld.x2 {%r1, %r2}, [%r3];\ntcgen05.wait::ld.sync;\nadd.s32 %r4, %r1, 1;"),
            std::vector<int>{});
}

TEST(PendingLoads, AWriteCountsAsAUse) {
  EXPECT_EQ(marked("tcgen05.ld.x2 {%r1, %r2}, [%r3];\nmov.b32 %r2, 0;\nmov.b32 %r1, 0;"),
            (std::vector<int>{1}));
  EXPECT_EQ(marked("tcgen05.ld.x2 {%r1, %r2}, [%r3];\ntcgen05.ld.x2 {%r1, %r4}, [%r3];"),
            (std::vector<int>{1}));
}

TEST(PendingLoads, AGuardedUseMayNotHappen) {
  EXPECT_EQ(marked("tcgen05.ld.x2 {%r1, %r2}, [%r3];\n@%p1 mov.b32 %r4, %r1;\nmov.b32 %r4, %r2;"),
            (std::vector<int>{1, 2}));
}

TEST(PendingLoads, PathsMeet) {
  // On one path the load is waited for, on the other it is not.
  EXPECT_EQ(
      marked(
          "tcgen05.ld.x2 {%r1, %r2}, [%r3];\n@%p1 bra L;\ntcgen05.wait::ld.sync;\nL:\nadd.s32 %r4, %r1, 1;"),
      (std::vector<int>{3}));
  // Around a loop: the use stands before the load in the text.
  EXPECT_EQ(marked("L:\nadd.s32 %r4, %r1, 1;\ntcgen05.ld.x2 {%r1, %r2}, [%r3];\n@%p1 bra L;"),
            (std::vector<int>{0}));
}

TEST(PendingLoads, TheirSlotsStayUntilTheyArrive) {
  // %r1 is dead after the load, but the load will still write its slot: %r5 and %r6 must lie elsewhere.
  const auto p = program(
      "mov.b32 %r3, 1;\ntcgen05.ld.x2 {%r1, %r2}, [%r3];\nmov.b32 %r5, 2;\nadd.s32 %r6, %r5, %r5;\nst.b32 "
      "[%rd1], %r6;\n"
      "tcgen05.wait::ld.sync;");
  const Step& load = p->code[1];
  for (int i : {0, 1}) {
    EXPECT_NE(load.list[i], p->code[2].d);
    EXPECT_NE(load.list[i], p->code[3].d);
  }
}

TEST(Allocation, DeadRegistersGiveTheirSlotsAway) {
  std::string body = ".reg .b32 t<200>;\nmov.b32 t0, %tid.x;\n";
  for (int i = 1; i < 200; ++i) {
    body += "add.s32 t" + std::to_string(i) + ", t" + std::to_string(i - 1) + ", 1;\n";
  }
  const auto p = program(body + "st.b32 [%rd1], t199;");
  EXPECT_LT(p->register_bytes, 10u * 32 * 8);
}

TEST(Allocation, AGuardedWriteKeepsTheOldValueAlive) {
  // In the next round the lanes without %p1 read the %r1 of this one: %r2 must not take its slot meanwhile.
  const auto p = program(
      "mov.b32 %r1, 1;\nL:\n@%p1 mov.b32 %r1, 3;\nst.b32 [%rd1], %r1;\nmov.b32 %r2, 2;\nst.b32 [%rd1], %r2;\n"
      "@%p2 bra L;");
  EXPECT_EQ(p->code[0].d, p->code[1].d);
  EXPECT_NE(p->code[3].d, p->code[0].d);
}

TEST(Allocation, AValueOfTheLastRoundIsAliveFromTheTop) {
  // %r1 comes from the end of the loop and is read in its middle: %r2, which lives before that, must lie
  // elsewhere.
  const auto p = program(
      "L:\nmov.b32 %r2, 2;\nst.b32 [%rd1], %r2;\n@%p1 st.b32 [%rd1], %r1;\nmov.b32 %r1, 1;\n@%p2 bra L;");
  EXPECT_NE(p->code[0].d, p->code[3].d);
}

TEST(Allocation, ALoopKeepsItsValuesAlive) {
  // %r1 is read at the top of the loop only, yet the next round reads it again: nothing in the loop may take
  // its slot.
  const auto p = program(
      "mov.b32 %r1, 1;\nL:\nadd.s32 %r2, %r1, 1;\nadd.s32 %r3, %r2, 1;\nadd.s32 %r4, %r3, 1;\nst.b32 [%rd1], "
      "%r4;\n@%p1 bra L;");
  for (int i : {1, 2, 3}) EXPECT_NE(p->code[i].d, p->code[0].d) << i;
}

}  // namespace
}  // namespace flashback::emulator
