// Elementwise instructions on operands of every kind: special values against special values, any bits,
// neighbours in magnitude, small integers. One launch a family; each form writes a buffer of its own.
#include <fmt/format.h>

#include <cstring>
#include <random>

#include "tests/emulator/hardware/experiment.h"

namespace flashback::emulator::testing {
namespace {

constexpr std::uint32_t kElements = 16384, kThreads = 256;

// `opcode` as in a row of the instruction table, all of whose choices are meant; `operands` are types, the
// destination's first, or literals.
struct Form {
  const char *opcode, *operands;
};
struct Sweep {
  const char* name;
  std::vector<Form> forms;
};

#define ROUNDINGS "{.rn|.rz|.rm|.rp}"
#define WHOLE "(.rni|.rzi|.rmi|.rpi)"
#define NEAREST_OR_ZERO "(.rn|.rz)"

const std::vector<Sweep>& sweeps() {
  static const std::vector<Sweep> all = {
      {"sweep_f32_sum",
       {{"add" ROUNDINGS "{.ftz}{.sat}.f32", "f32 f32 f32"},
        {"sub" ROUNDINGS "{.ftz}{.sat}.f32", "f32 f32 f32"}}},
      {"sweep_f32_product",
       {{"mul" ROUNDINGS "{.ftz}{.sat}.f32", "f32 f32 f32"},
        {"fma(.rn|.rz|.rm|.rp){.ftz}{.sat}.f32", "f32 f32 f32 f32"},
        {"mad(.rn|.rz|.rm|.rp){.ftz}.f32", "f32 f32 f32 f32"}}},
      {"sweep_f32_quotient",
       {{"div(.rn|.rz|.rm|.rp){.ftz}.f32", "f32 f32 f32"},
        {"rcp(.rn|.rz|.rm|.rp){.ftz}.f32", "f32 f32"},
        {"sqrt(.rn|.rz|.rm|.rp){.ftz}.f32", "f32 f32"}}},
      {"sweep_f32_approximate",
       {{"ex2.approx{.ftz}.f32", "f32 f32"},
        {"lg2.approx{.ftz}.f32", "f32 f32"},
        {"rcp.approx{.ftz}.f32", "f32 f32"},
        {"rsqrt.approx{.ftz}.f32", "f32 f32"},
        {"sqrt.approx{.ftz}.f32", "f32 f32"},
        {"div(.approx|.full){.ftz}.f32", "f32 f32 f32"}}},
      {"sweep_f32_select",
       {{"neg{.ftz}.f32", "f32 f32"},
        {"abs{.ftz}.f32", "f32 f32"},
        {"copysign.f32", "f32 f32 f32"},
        {"min{.ftz}{.NaN}{.xorsign.abs}.f32", "f32 f32 f32"},
        {"max{.ftz}{.NaN}{.xorsign.abs}.f32", "f32 f32 f32"},
        {"testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal).f32", "pred f32"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan){.ftz}.f32", "pred f32 f32"},
        {"slct{.ftz}.f32.f32", "f32 f32 f32 f32"},
        {"slct.s32.s32", "s32 s32 s32 s32"}}},
      {"sweep_f64",
       {{"add{.rn}.f64", "f64 f64 f64"},
        {"sub{.rn}.f64", "f64 f64 f64"},
        {"mul{.rn}.f64", "f64 f64 f64"},
        {"fma.rn.f64", "f64 f64 f64 f64"},
        {"div.rn.f64", "f64 f64 f64"},
        {"rcp.rn.f64", "f64 f64"},
        {"sqrt.rn.f64", "f64 f64"},
        {"neg.f64", "f64 f64"},
        {"abs.f64", "f64 f64"},
        {"copysign.f64", "f64 f64 f64"},
        {"min.f64", "f64 f64 f64"},
        {"max.f64", "f64 f64 f64"},
        {"testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal).f64", "pred f64"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan).f64", "pred f64 f64"}}},
      {"sweep_f16",
       {{"add{.rn}{.ftz}{.sat}.f16", "f16 f16 f16"},
        {"sub{.rn}{.ftz}{.sat}.f16", "f16 f16 f16"},
        {"mul{.rn}{.ftz}{.sat}.f16", "f16 f16 f16"},
        {"fma.rn{.ftz}{.sat|.relu}.f16", "f16 f16 f16 f16"},
        {"add{.rn}{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2"},
        {"sub{.rn}{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2"},
        {"mul{.rn}{.ftz}{.sat}.f16x2", "f16x2 f16x2 f16x2"},
        {"fma.rn{.ftz}{.sat|.relu}.f16x2", "f16x2 f16x2 f16x2 f16x2"},
        {"neg{.ftz}.f16", "f16 f16"},
        {"abs{.ftz}.f16", "f16 f16"},
        {"neg{.ftz}.f16x2", "f16x2 f16x2"},
        {"abs{.ftz}.f16x2", "f16x2 f16x2"},
        {"min{.ftz}{.NaN}{.xorsign.abs}.f16", "f16 f16 f16"},
        {"max{.ftz}{.NaN}{.xorsign.abs}.f16", "f16 f16 f16"},
        {"min{.ftz}{.NaN}{.xorsign.abs}.f16x2", "f16x2 f16x2 f16x2"},
        {"max{.ftz}{.NaN}{.xorsign.abs}.f16x2", "f16x2 f16x2 f16x2"},
        {"ex2.approx.f16", "f16 f16"},
        {"ex2.approx.f16x2", "f16x2 f16x2"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan).f16", "pred f16 f16"}}},
      {"sweep_bf16",
       {{"add{.rn}.bf16", "bf16 bf16 bf16"},
        {"sub{.rn}.bf16", "bf16 bf16 bf16"},
        {"mul{.rn}.bf16", "bf16 bf16 bf16"},
        {"fma.rn{.relu}.bf16", "bf16 bf16 bf16 bf16"},
        {"add{.rn}.bf16x2", "bf16x2 bf16x2 bf16x2"},
        {"sub{.rn}.bf16x2", "bf16x2 bf16x2 bf16x2"},
        {"mul{.rn}.bf16x2", "bf16x2 bf16x2 bf16x2"},
        {"fma.rn{.relu}.bf16x2", "bf16x2 bf16x2 bf16x2 bf16x2"},
        {"neg.bf16", "bf16 bf16"},
        {"abs.bf16", "bf16 bf16"},
        {"neg.bf16x2", "bf16x2 bf16x2"},
        {"abs.bf16x2", "bf16x2 bf16x2"},
        {"min{.NaN}{.xorsign.abs}.bf16", "bf16 bf16 bf16"},
        {"max{.NaN}{.xorsign.abs}.bf16", "bf16 bf16 bf16"},
        {"min{.NaN}{.xorsign.abs}.bf16x2", "bf16x2 bf16x2 bf16x2"},
        {"max{.NaN}{.xorsign.abs}.bf16x2", "bf16x2 bf16x2 bf16x2"},
        {"ex2.approx.ftz.bf16", "bf16 bf16"},
        {"ex2.approx.ftz.bf16x2", "bf16x2 bf16x2"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan).bf16", "pred bf16 bf16"}}},
      {"sweep_cvt_to_float",
       {{"cvt(.rn|.rz|.rm|.rp){.sat}.f32(.u8|.s8)", "f32 u16"},
        {"cvt(.rn|.rz|.rm|.rp){.sat}.f32(.u16|.s16)", "f32 u16"},
        {"cvt(.rn|.rz|.rm|.rp){.sat}.f32(.u32|.s32)", "f32 u32"},
        {"cvt(.rn|.rz|.rm|.rp){.sat}.f32(.u64|.s64)", "f32 u64"},
        {"cvt(.rn|.rz|.rm|.rp).f16(.u32|.s32)", "f16 u32"},
        {"cvt(.rn|.rz|.rm|.rp).f64(.u32|.s32)", "f64 u32"},
        {"cvt(.rn|.rz|.rm|.rp).f64(.u64|.s64)", "f64 u64"},
        {"cvt{.ftz}{.sat}.f32.f16", "f32 f16"},
        {"cvt.f32.bf16", "f32 bf16"},
        {"cvt{.ftz}{.sat}.f64.f32", "f64 f32"},
        {"cvt(.rn|.rz|.rm|.rp){.ftz}{.sat}.f32.f64", "f32 f64"},
        {"cvt(.rn|.rz|.rm|.rp).f16.f64", "f16 f64"},
        {"cvt(.rn|.rz|.rm|.rp){.ftz}{.sat}.f16.f32", "f16 f32"},
        {"cvt" NEAREST_OR_ZERO "{.relu}.f16.f32", "f16 f32"},
        {"cvt" NEAREST_OR_ZERO "{.relu}.bf16.f32", "bf16 f32"},
        {"cvt" NEAREST_OR_ZERO "{.relu}(.f16x2|.bf16x2).f32", "u32 f32 f32"},
        {"cvt" WHOLE "{.ftz}{.sat}.f32.f32", "f32 f32"},
        {"cvt" WHOLE ".f16.f16", "f16 f16"},
        {"cvt" WHOLE ".f64.f64", "f64 f64"}}},
      {"sweep_cvt_to_integer",
       {{"cvt" WHOLE "{.ftz}(.u8|.s8).f32", "u32 f32"},
        {"cvt" WHOLE "{.ftz}(.u16|.s16).f32", "u16 f32"},
        {"cvt" WHOLE "{.ftz}{.sat}(.u32|.s32).f32", "u32 f32"},
        {"cvt" WHOLE "{.ftz}(.u64|.s64).f32", "u64 f32"},
        {"cvt" WHOLE "(.u32|.s32).f16", "u32 f16"},
        {"cvt" WHOLE "(.u32|.s32).f64", "u32 f64"},
        {"cvt" WHOLE "(.u64|.s64).f64", "u64 f64"},
        {"cvt{.sat}(.u8|.s8)(.u16|.s16)", "u16 u16"},
        {"cvt{.sat}(.u8|.s8)(.u32|.s32)", "u16 u32"},
        {"cvt{.sat}(.u16|.s16)(.u32|.s32)", "u16 u32"},
        {"cvt{.sat}(.u16|.s16)(.u64|.s64)", "u16 u64"},
        {"cvt(.u32|.s32)(.u8|.s8|.u16|.s16)", "u32 u16"},
        {"cvt.sat.u32(.s8|.s16)", "u32 u16"},
        {"cvt{.sat}(.u32|.s32)(.u64|.s64)", "u32 u64"},
        {"cvt(.u64|.s64)(.u32|.s32)", "u64 u32"},
        {"cvt.sat.u64.s32", "u64 u32"}}},
      {"sweep_integer_arithmetic",
       {{"add(.u16|.s16)", "u16 u16 u16"},
        {"add(.u32|.s32)", "u32 u32 u32"},
        {"add(.u64|.s64)", "u64 u64 u64"},
        {"add.sat.s32", "s32 s32 s32"},
        {"sub(.u16|.s16)", "u16 u16 u16"},
        {"sub(.u32|.s32)", "u32 u32 u32"},
        {"sub(.u64|.s64)", "u64 u64 u64"},
        {"sub.sat.s32", "s32 s32 s32"},
        {"mul(.lo|.hi)(.u16|.s16)", "u16 u16 u16"},
        {"mul(.lo|.hi)(.u32|.s32)", "u32 u32 u32"},
        {"mul(.lo|.hi)(.u64|.s64)", "u64 u64 u64"},
        {"mul.wide(.u16|.s16)", "u32 u16 u16"},
        {"mul.wide(.u32|.s32)", "u64 u32 u32"},
        {"mad.lo(.u16|.s16)", "u16 u16 u16 u16"},
        {"mad(.lo|.hi)(.u32|.s32)", "u32 u32 u32 u32"},
        {"mad(.lo|.hi)(.u64|.s64)", "u64 u64 u64 u64"},
        {"mad.wide(.u16|.s16)", "u32 u16 u16 u32"},
        {"mad.wide(.u32|.s32)", "u64 u32 u32 u64"},
        {"min(.u16|.s16)", "u16 u16 u16"},
        {"min(.u32|.s32)", "u32 u32 u32"},
        {"min(.u64|.s64)", "u64 u64 u64"},
        {"max(.u16|.s16)", "u16 u16 u16"},
        {"max(.u32|.s32)", "u32 u32 u32"},
        {"max(.u64|.s64)", "u64 u64 u64"},
        {"neg.s16", "s16 s16"},
        {"neg.s32", "s32 s32"},
        {"neg.s64", "s64 s64"},
        {"abs.s16", "s16 s16"},
        {"abs.s32", "s32 s32"},
        {"abs.s64", "s64 s64"}}},
      {"sweep_integer_bits",
       {{"and.b16", "b16 b16 b16"},
        {"and.b32", "b32 b32 b32"},
        {"and.b64", "b64 b64 b64"},
        {"or.b16", "b16 b16 b16"},
        {"or.b32", "b32 b32 b32"},
        {"or.b64", "b64 b64 b64"},
        {"xor.b16", "b16 b16 b16"},
        {"xor.b32", "b32 b32 b32"},
        {"xor.b64", "b64 b64 b64"},
        {"not.b16", "b16 b16"},
        {"not.b32", "b32 b32"},
        {"not.b64", "b64 b64"},
        {"cnot.b16", "b16 b16"},
        {"cnot.b32", "b32 b32"},
        {"cnot.b64", "b64 b64"},
        {"lop3.b32", "b32 b32 b32 b32 0x96"},
        {"lop3.b32", "b32 b32 b32 b32 0xca"},
        {"lop3.b32", "b32 b32 b32 b32 0xf8"},
        {"lop3.b32", "b32 b32 b32 b32 0x1b"},
        {"shl.b16", "b16 b16 u32"},
        {"shl.b32", "b32 b32 u32"},
        {"shl.b64", "b64 b64 u32"},
        {"shr(.b16|.u16|.s16)", "b16 b16 u32"},
        {"shr(.b32|.u32|.s32)", "b32 b32 u32"},
        {"shr(.b64|.u64|.s64)", "b64 b64 u32"},
        {"shf(.l|.r)(.wrap|.clamp).b32", "b32 b32 b32 u32"},
        {"popc.b32", "u32 b32"},
        {"popc.b64", "u32 b64"},
        {"clz.b32", "u32 b32"},
        {"clz.b64", "u32 b64"},
        {"brev.b32", "b32 b32"},
        {"brev.b64", "b64 b64"},
        {"bfind{.shiftamt}(.u32|.s32)", "u32 u32"},
        {"bfind{.shiftamt}(.u64|.s64)", "u32 u64"},
        {"bfe(.u32|.s32)", "u32 u32 u32 u32"},
        {"bfe(.u64|.s64)", "u64 u64 u32 u32"},
        {"bfi.b32", "b32 b32 b32 u32 u32"},
        {"bfi.b64", "b64 b64 b64 u32 u32"},
        {"bmsk(.wrap|.clamp).b32", "b32 u32 u32"},
        {"prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}", "b32 b32 b32 u32"},
        {"setp(.eq|.ne).b16", "pred b16 b16"},
        {"setp(.eq|.ne).b32", "pred b32 b32"},
        {"setp(.eq|.ne).b64", "pred b64 b64"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs).u32", "pred u32 u32"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge).s32", "pred s32 s32"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs).u64", "pred u64 u64"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge).s64", "pred s64 s64"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs).u16", "pred u16 u16"},
        {"setp(.eq|.ne|.lt|.le|.gt|.ge).s16", "pred s16 s16"}}},
      {"sweep_integer_quotient",
       {{"div(.u16|.s16)", "u16 u16 odd16"},
        {"div(.u32|.s32)", "u32 u32 odd32"},
        {"div(.u64|.s64)", "u64 u64 odd64"},
        {"rem(.u16|.s16)", "u16 u16 odd16"},
        {"rem(.u32|.s32)", "u32 u32 odd32"},
        {"rem(.u64|.s64)", "u64 u64 odd64"}}},
  };
  return all;
}

// All opcodes of a form: every choice of `(x|y)`, and of `{x|y}` also none.
std::vector<std::string> expand(std::string_view form) {
  const std::size_t open = form.find_first_of("({");
  if (open == form.npos) return {std::string(form)};
  const std::size_t close = form.find_first_of(")}", open);
  const std::vector<std::string> tails = expand(form.substr(close + 1));
  std::vector<std::string> all;
  const auto add = [&](std::string_view choice) {
    for (const std::string& tail : tails)
      all.push_back(std::string(form.substr(0, open)).append(choice).append(tail));
  };
  if (form[open] == '{') add("");
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t bar = std::min(form.find('|', at), close);
    add(form.substr(at, bar - at));
    at = bar + 1;
  }
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_type(const std::string& word) {
  return std::isalpha(static_cast<unsigned char>(word[0])) != 0;
}
int bytes_of(const std::string& type) {
  if (type == "pred" || type.find("x2") != type.npos) return 4;
  return std::atoi(type.c_str() + type.find_first_of("0123456789")) / 8;
}

// ---- operands

struct Layout {  // of a floating-point type
  int bits, fraction;
};
std::uint64_t float_bits(std::mt19937_64& random, Layout f, std::uint64_t neighbour) {
  const int exponent_bits = f.bits - 1 - f.fraction;
  const std::uint64_t one = 1, infinity = ((one << exponent_bits) - 1) << f.fraction;
  const std::uint64_t unit = (infinity >> 1 >> f.fraction) << f.fraction;  // 1.0
  const std::uint64_t specials[] = {0,
                                    1,
                                    (one << f.fraction) - 1,
                                    one << f.fraction,
                                    unit,
                                    unit + 1,
                                    unit - 1,
                                    infinity - 1,
                                    infinity,
                                    infinity + 1,
                                    infinity | one << (f.fraction - 1),
                                    unit / 2,
                                    unit + (one << f.fraction) / 2};
  const std::uint64_t sign = (random() & 1) << (f.bits - 1),
                      mask = f.bits == 64 ? ~0ull : (one << f.bits) - 1;
  switch (random() % 4) {
    case 0:
      return sign | specials[random() % std::size(specials)];
    case 1:
      return random() & mask;
    case 2:  // close to another operand in magnitude, so that sums cancel
      return (neighbour + random() % 9 - 4) & mask;
    default:  // an exponent near that of one
      return sign |
             (((unit >> f.fraction) + random() % 40 - 20) & ((one << exponent_bits) - 1)) << f.fraction |
             (random() & ((one << f.fraction) - 1));
  }
}

std::uint64_t integer_bits(std::mt19937_64& random, int bits, std::uint64_t neighbour) {
  const std::uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1, top = 1ull << (bits - 1);
  const std::uint64_t specials[] = {0, 1, 2, top - 1, top, top + 1, mask, mask - 1, 255, 128, 127, 256};
  switch (random() % 5) {
    case 0:
      return specials[random() % std::size(specials)] & mask;
    case 1:
      return (neighbour + random() % 3 - 1) & mask;
    case 2:  // a shift, a place, a length
      return random() % 80 & mask;
    case 3:
      return (random() & mask) >> random() % static_cast<unsigned>(bits);
    default:
      return random() & mask;
  }
}

std::uint64_t element(std::mt19937_64& random, const std::string& type, std::uint64_t neighbour) {
  if (type == "f32") return float_bits(random, {32, 23}, neighbour);
  if (type == "f64") return float_bits(random, {64, 52}, neighbour);
  if (type == "f16") return float_bits(random, {16, 10}, neighbour);
  if (type == "bf16") return float_bits(random, {16, 7}, neighbour);
  if (type == "f16x2" || type == "bf16x2") {
    const std::string half = type.substr(0, type.size() - 2);
    const std::uint64_t low = element(random, half, neighbour & 0xffff);
    return low | element(random, half, neighbour >> 16) << 16;
  }
  const std::uint64_t bits = integer_bits(random, 8 * bytes_of(type), neighbour);
  return type.rfind("odd", 0) == 0 ? bits | 1 : bits;  // a divisor
}

// The operands of one type at one position of all forms of a family.
std::vector<std::byte> operands(const std::string& type, int position, const std::vector<std::byte>* before) {
  std::mt19937_64 random(static_cast<unsigned>(position) * 1000 + type.size() * 100 +
                         static_cast<unsigned char>(type[0]));
  const auto bytes = static_cast<std::size_t>(bytes_of(type));
  std::vector<std::byte> all(kElements * bytes);
  for (std::size_t i = 0; i < kElements; ++i) {
    std::uint64_t neighbour = 0;
    if (before != nullptr) std::memcpy(&neighbour, &(*before)[i * bytes], bytes);
    const std::uint64_t value = element(random, type, neighbour);
    std::memcpy(&all[i * bytes], &value, bytes);
  }
  return all;
}

// ---- the launch

class Writer {
 public:
  explicit Writer(const Sweep& sweep) {
    e_.block.x = kThreads;
    e_.grid.x = kElements / kThreads;
    for (const Form& form : sweep.forms) {
      for (const std::string& opcode : expand(form.opcode)) add(opcode, words_of(form.operands));
    }
    e_.modules = {fmt::format(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .align 64 .b8 "
        "p[{}])\n{{\n"
        ".reg .b64 %at;\n.reg .b32 %i, %block, %word;\n{}mov.u32 %i, %tid.x;\nmov.u32 %block, %ctaid.x;\n"
        "mad.lo.u32 %i, %block, {}, %i;\n{}{}ret;\n}}\n",
        8 * e_.buffers.size(), declarations_, kThreads, loads_, body_)};
  }
  Experiment take() { return std::move(e_); }

 private:
  // `%at` becomes the address of this thread's element of a new buffer.
  std::string place(Buffer buffer) {
    const int bytes = buffer.type.bytes;
    e_.buffers.push_back(std::move(buffer));
    return fmt::format("ld.param.u64 %at, [p+{}];\nmad.wide.u32 %at, %i, {}, %at;\n",
                       8 * (e_.buffers.size() - 1), bytes);
  }

  // The register with the source of this type and position.
  std::string source(const std::string& type, int position) {
    const std::string name = fmt::format("{}_{}", type, position);
    for (const Buffer& buffer : e_.buffers) {
      if (buffer.name == name) return "%" + name;
    }
    const std::vector<std::byte>* before = nullptr;
    for (const Buffer& buffer : e_.buffers) {
      if (buffer.name == fmt::format("{}_{}", type, position - 1)) before = &buffer.initial;
    }
    std::vector<std::byte> values = operands(type, position, before);
    const int bits = 8 * bytes_of(type);
    declarations_ += fmt::format(".reg .b{} %{};\n", bits, name);
    loads_ += place({name, {fmt::format("b{}", bits), bits / 8}, std::move(values)});
    loads_ += fmt::format("ld.global.b{} %{}, [%at];\n", bits, name);
    return "%" + name;
  }

  void add(const std::string& opcode, const std::vector<std::string>& operands) {
    const std::string& type = operands[0];
    const int bits = 8 * bytes_of(type);
    std::string instruction = opcode + " %d", name = opcode;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      const bool literal = !is_type(operands[i]);
      instruction += ", " + (literal ? operands[i] : source(operands[i], static_cast<int>(i)));
      if (literal) name += "," + operands[i];
    }
    Buffer result{name, {type == "pred" ? "u32" : fmt::format("u{}", bits), bits / 8}, {}};
    result.compared = kElements;
    result.initial.assign(kElements * static_cast<std::size_t>(bits / 8), std::byte{0xa5});
    const std::string at = place(std::move(result));
    if (type == "pred") {
      body_ += fmt::format(
          "{{\n.reg .pred %d;\n{};\nselp.u32 %word, 1, 0, %d;\n{}st.global.b32 [%at], %word;\n}}\n",
          instruction, at);
    } else {
      body_ +=
          fmt::format("{{\n.reg .b{0} %d;\n{1};\n{2}st.global.b{0} [%at], %d;\n}}\n", bits, instruction, at);
    }
  }

  Experiment e_;
  std::string declarations_, loads_, body_;
};

}  // namespace

std::vector<Recipe> sweep_experiments() {
  std::vector<Recipe> all;
  for (const Sweep& sweep : sweeps()) all.push_back({sweep.name, [&sweep] { return Writer(sweep).take(); }});
  return all;
}

}  // namespace flashback::emulator::testing
