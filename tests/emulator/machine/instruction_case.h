// A test of instructions as a text: lines of PTX with what goes in and what must come out in comments.
//
//     // in  a: s32 = 1 0x7fffffff        register `a` of each thread: its value of the list, which repeats
//     add.s32 d, a, 1;
//     // out d: s32 = 2 0x80000000        register `d` afterwards, bit for bit
//     // out e: f32 within 2 = 1.5        or within two units in the last place
//     // buffer p: u32 = 1 2 3            memory; the 64 bit register `p` has its address
//     // after  p: u32 = 1 7 3            what it holds afterwards
//     // fault: part of the sentence      with which the launch must fail
//     // module .global .b32 x = 1;       a line at the level of the module
//     // block 64                         threads of a CTA; 32 without this line
//     // cluster 2                        CTAs, all of one cluster; 1 without. Threads count over all of them
//     // shared 1024                      bytes of dynamic shared memory, the array `dynamic`
//     // arch sm_100a                     only there; without this line on every architecture
//     // converged                        the lanes must execute it together
//
// Types are those of PTX and `pred`. Values: integers, 0x... as bits, and for floating-point types decimal
// fractions, inf, -inf and nan (the canonical one). An `out` register starts with all bits 0xa5a5..., so that
// lanes that are not written show. Unless it says `converged`, a text runs twice: with all lanes together,
// and again with the odd lanes and the even ones apart.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace flashback::emulator::testing {

struct ValueType {
  std::string name;
  int bytes = 4;  // in memory
  bool is_float() const { return name == "f16" || name == "bf16" || name == "f32" || name == "f64"; }
};

struct Field {
  enum class Kind { kIn, kOut, kBuffer, kAfter };
  Kind kind;
  std::string name;
  ValueType type;
  std::uint64_t units_in_last_place = 0;
  std::vector<std::uint64_t> values;  // bits
  int line = 0;
};

struct InstructionCase {
  std::vector<Field> fields;
  std::string body;
  std::string module;  // declarations outside the entry
  std::string fault;
  std::string arch;
  std::uint32_t block = 32, cluster = 1;
  std::uint32_t shared_bytes = 0;
  bool converged = false;

  std::uint32_t threads() const { return block * cluster; }
};

inline ValueType value_type(const std::string& name) {
  if (name == "pred") return {name, 4};
  const std::size_t digits = name.find_first_of("0123456789");
  const int bits = digits == std::string::npos ? 0 : std::atoi(name.c_str() + digits);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) throw std::invalid_argument("no type: " + name);
  return {name, bits / 8};
}

// The bits of an f16 or bf16 that holds x exactly.
inline std::uint64_t half_bits(float x, bool bf16) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if (bf16) {
    if (bits & 0xffff) throw std::invalid_argument("no bf16 value");
    return bits >> 16;
  }
  const std::uint32_t sign = bits >> 16 & 0x8000;
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | 0x7c00;
  const int exponent = std::max(std::ilogb(x), -14);
  const double significand = std::ldexp(std::abs(double(x)), 10 - exponent);
  if (significand != std::floor(significand) || exponent > 15) throw std::invalid_argument("no f16 value");
  const std::uint32_t whole = std::uint32_t(significand);
  return sign | (whole < 1024 ? whole : (std::uint32_t(exponent + 15) << 10 | (whole - 1024)));
}

inline std::uint64_t value_bits(const std::string& text, const ValueType& type) {
  char* end = nullptr;
  std::uint64_t bits = 0;
  if (type.is_float() && text.rfind("0x", 0) != 0) {
    const bool half = type.bytes == 2, bf16 = type.name == "bf16";
    if (text == "nan") return half ? 0x7fff : type.bytes == 4 ? 0x7fffffff : 0x7fffffffffffffff;
    const double value = std::strtod(text.c_str(), &end);
    bits = half              ? half_bits(float(value), bf16)
           : type.bytes == 4 ? std::bit_cast<std::uint32_t>(std::strtof(text.c_str(), &end))
                             : std::bit_cast<std::uint64_t>(value);
  } else {
    bits = text[0] == '-' ? std::uint64_t(std::strtoll(text.c_str(), &end, 0))
                          : std::strtoull(text.c_str(), &end, 0);
  }
  if (end != text.c_str() + text.size()) throw std::invalid_argument("no value: " + text);
  return type.bytes == 8 ? bits : bits & ((std::uint64_t{1} << (8 * type.bytes)) - 1);
}

inline bool parse_field(const std::string& keyword, std::istringstream& words, int line,
                        InstructionCase* test) {
  Field field;
  field.line = line;
  if (keyword == "in") {
    field.kind = Field::Kind::kIn;
  } else if (keyword == "out") {
    field.kind = Field::Kind::kOut;
  } else if (keyword == "buffer") {
    field.kind = Field::Kind::kBuffer;
  } else if (keyword == "after") {
    field.kind = Field::Kind::kAfter;
  } else {
    return false;
  }
  std::string type, word;
  if (!(words >> field.name >> type) || field.name.back() != ':') return false;  // prose
  field.name.pop_back();
  field.type = value_type(type);
  words >> word;
  if (word == "within") words >> field.units_in_last_place >> word;
  if (word != "=") throw std::invalid_argument(fmt::format("line {}: `=` is missing", line));
  while (words >> word) field.values.push_back(value_bits(word, field.type));
  if (field.values.empty()) throw std::invalid_argument(fmt::format("line {}: no values", line));
  test->fields.push_back(std::move(field));
  return true;
}

inline InstructionCase parse_case(const std::string& text) {
  InstructionCase test;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string slashes, keyword;
    words >> slashes;
    if (slashes != "//") {
      test.body += line + '\n';
      continue;
    }
    words >> keyword;
    if (parse_field(keyword, words, number, &test)) continue;
    if (keyword == "fault:") {
      std::getline(words >> std::ws, test.fault);
    } else if (keyword == "module") {
      std::string declaration;
      std::getline(words, declaration);
      test.module += declaration + '\n';
    } else if (keyword == "block") {
      words >> test.block;
    } else if (keyword == "cluster") {
      words >> test.cluster;
    } else if (keyword == "shared") {
      words >> test.shared_bytes;
    } else if (keyword == "arch") {
      words >> test.arch;
    } else if (line == "// converged") {
      test.converged = true;
    }
  }
  return test;
}

// The module around the body. Its entry `test` takes one array of addresses, one for each field in order.
inline std::string module_of(const InstructionCase& test, std::string_view target, bool lanes_apart) {
  std::string declarations, prologue, epilogue;
  for (std::size_t i = 0; i < test.fields.size(); ++i) {
    const Field& f = test.fields[i];
    const bool pred = f.type.name == "pred";
    const int bits = 8 * f.type.bytes;
    const std::string parameter = fmt::format("ld.param.u64 %address, [buffers+{}];\n", 8 * i);
    const std::string place =
        parameter + fmt::format("mad.wide.u32 %address, %thread, {}, %address;\n", f.type.bytes);
    if (f.kind == Field::Kind::kBuffer) {
      declarations += fmt::format(".reg .b64 {};\n", f.name);
      prologue += parameter + fmt::format("mov.b64 {}, %address;\n", f.name);
    } else if (f.kind == Field::Kind::kIn || f.kind == Field::Kind::kOut) {
      declarations += pred ? fmt::format(".reg .pred {};\n", f.name)
                           : fmt::format(".reg .b{} {};\n", std::max(bits, 16), f.name);
      prologue += place;
      prologue += pred ? fmt::format("ld.global.u32 %word, [%address];\nsetp.ne.u32 {}, %word, 0;\n", f.name)
                       : fmt::format("ld.global.u{} {}, [%address];\n", bits, f.name);
    }
    if (f.kind == Field::Kind::kOut) {
      epilogue += place;
      epilogue += pred ? fmt::format("selp.u32 %word, 1, 0, {};\nst.global.u32 [%address], %word;\n", f.name)
                       : fmt::format("st.global.u{} [%address], {};\n", bits, f.name);
    }
  }
  const std::string body = "{\n" + test.body + "}\n";
  const std::string apart =
      "and.b32 %word, %thread, 1;\nsetp.ne.u32 %odd, %word, 0;\n@%odd bra ODD_LANES;\n" + body +
      "bra ALL_LANES;\nODD_LANES:\n" + body + "ALL_LANES:\n";
  return fmt::format(
      ".version 8.8\n.target {}\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n{}"
      ".visible .entry test(.param .align 8 .b8 buffers[{}])\n{{\n"
      ".reg .b64 %address;\n.reg .b32 %thread, %word;\n.reg .pred %odd;\n{}mov.u32 %thread, %ctaid.x;\n"
      "mov.u32 %word, %ntid.x;\nmul.lo.u32 %thread, %thread, %word;\nmov.u32 %word, %tid.x;\n"
      "add.u32 %thread, %thread, %word;\n{}{}{}ret;\n}}\n",
      target, test.module, 8 * std::max<std::size_t>(test.fields.size(), 1), declarations, prologue,
      lanes_apart ? apart : body, epilogue);
}

// The memory of a field before the launch. An `after` has none: it looks at the buffer of its name.
inline std::vector<std::byte> memory_of(const InstructionCase& test, const Field& field) {
  if (field.kind == Field::Kind::kAfter) return {};
  const std::size_t count = field.kind == Field::Kind::kBuffer ? field.values.size() : test.threads();
  std::vector<std::byte> memory(count * field.type.bytes, std::byte(0xa5));
  if (field.kind == Field::Kind::kOut) return memory;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&memory[i * field.type.bytes], &field.values[i % field.values.size()], field.type.bytes);
  }
  return memory;
}

// Numbers of a floating-point type in order, so that neighbours differ by one.
inline std::int64_t rank_of(std::uint64_t bits, const ValueType& type) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * type.bytes - 1);
  return bits & sign ? -std::int64_t(bits ^ sign) : std::int64_t(bits);
}

inline bool agrees(std::uint64_t got, std::uint64_t expected, const Field& field) {
  if (got == expected || field.units_in_last_place == 0) return got == expected;
  const std::int64_t distance = rank_of(got, field.type) - rank_of(expected, field.type);
  return std::uint64_t(std::abs(distance)) <= field.units_in_last_place;
}

// What is wrong in the memory of an `out` field, or of the buffer of an `after` field; empty when nothing is.
inline std::string difference(const InstructionCase& test, const Field& field,
                              const std::vector<std::byte>& memory) {
  const std::size_t count = field.kind == Field::Kind::kAfter ? field.values.size() : test.threads();
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t got = 0;
    if ((i + 1) * field.type.bytes > memory.size())
      return fmt::format("line {}: beyond the buffer", field.line);
    std::memcpy(&got, &memory[i * field.type.bytes], field.type.bytes);
    const std::uint64_t expected = field.values[i % field.values.size()];
    if (!agrees(got, expected, field)) {
      text +=
          fmt::format("line {}: {}[{}] is {:#x}, expected {:#x}\n", field.line, field.name, i, got, expected);
    }
  }
  return text;
}

}  // namespace flashback::emulator::testing
