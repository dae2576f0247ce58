// The functions that CUDA provides to device code: vprintf, __assertfail.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string>

#include "emulator/machine/cta.h"
#include "emulator/machine/execute/addresses.h"
#include "emulator/machine/execute/lanes.h"
#include "emulator/program/instruction_set.h"

namespace flashback::emulator {
namespace {

// The text at a generic address, up to its zero.
std::string text_at(Warp& warp, const Step& step, int lane, std::uint64_t address) {
  constexpr std::size_t kMost = 1 << 16;
  std::string text;
  while (text.size() < kMost) {
    const char c = static_cast<char>(*readable(warp, step, lane, address + text.size(), 1));
    if (c == 0) return text;
    text += c;
  }
  warp.fault(step, fmt::format("the text at {:#x} has no end within {} bytes", address, kMost));
}

// The arguments behind a format, each aligned to its size.
class Arguments {
 public:
  Arguments(Warp& warp, const Step& step, int lane, std::uint64_t address)
      : warp_(warp), step_(step), lane_(lane), at_(address) {}

  template <class T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::memcpy(&value, readable(warp_, step_, lane_, at_, sizeof(T)), sizeof(T));
    at_ += sizeof(T);
    ++count_;
    return value;
  }
  std::string next_text() { return text_at(warp_, step_, lane_, next<std::uint64_t>()); }
  std::uint32_t count() const { return count_; }

 private:
  Warp& warp_;
  const Step& step_;
  const int lane_;
  std::uint64_t at_;
  std::uint32_t count_ = 0;
};

template <class T>
std::string printed(const std::string& specification, T value) {
  char buffer[1024];
  const int length = std::snprintf(buffer, sizeof buffer, specification.c_str(), value);
  return length < 0 ? std::string() : std::string(buffer, std::min<std::size_t>(length, sizeof buffer - 1));
}

// One `%...` as C has it, its arguments taken.
std::string convert(const std::string& specification, Arguments& arguments) {
  const char type = specification.back();
  const bool is_long = specification.find('l') != std::string::npos;
  switch (type) {
    case 'd':
    case 'i':
      return is_long ? printed(specification, arguments.next<long long>())
                     : printed(specification, arguments.next<int>());
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'c':
      return is_long ? printed(specification, arguments.next<unsigned long long>())
                     : printed(specification, arguments.next<unsigned>());
    case 'p':
      return printed(specification, reinterpret_cast<void*>(arguments.next<std::uint64_t>()));
    case 's':
      return printed(specification, arguments.next_text().c_str());
    default:
      return printed(specification, arguments.next<double>());
  }
}

std::string format(const std::string& text, Arguments& arguments) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::size_t end = text.find_first_of("%diouxXcpsfFeEgGaA", i + 1);
    if (end == std::string::npos) return out + text.substr(i);  // no conversion: as it stands
    if (text[end] == '%') {
      out += '%';
    } else {
      std::string specification = "%";
      for (std::size_t at = i + 1; at <= end; ++at) {
        specification += text[at] == '*' ? std::to_string(arguments.next<int>()) : std::string(1, text[at]);
      }
      out += convert(specification, arguments);
    }
    i = end;
  }
  return out;
}

// a: format, b: where the arguments lie. d: their number.
void print(Warp& warp, const Step& step, LaneMask mask) {
  Cta& cta = warp.cta();
  const std::uint64_t* text = warp.lanes<std::uint64_t>(step.a);
  const std::uint64_t* list = warp.lanes<std::uint64_t>(step.b);
  std::uint32_t* d = warp.lanes<std::uint32_t>(step.d);
  for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    Arguments arguments(warp, step, l, list[l]);
    cta.launch().printed->append(cta.number(), format(text_at(warp, step, l, text[l]), arguments));
    d[l] = arguments.count();
  }
}

// a: the condition, b: the file, c: the line, list: the function and the size of a character.
void assertion_failed(Warp& warp, const Step& step, LaneMask mask) {
  const int l = std::countr_zero(mask);
  const auto text = [&](Slot slot) { return text_at(warp, step, l, warp.lanes<std::uint64_t>(slot)[l]); };
  warp.fault(step,
             fmt::format("lane {}: the assertion `{}` failed at {}:{}, in {}", l, text(step.a), text(step.b),
                         warp.lanes<std::uint32_t>(step.c)[l], text(step.list[0])),
             FaultKind::kAssertion);
}

template <Body body>
Body always(Match&) {
  return body;
}

constexpr Row kRows[] = {
    {"call.vprintf", "d:r32, a:r64, b:r64", always<print>},
    {"call.__assertfail", "a:r64, b:r64, c:r32, l:r64, l:r64", always<assertion_failed>},
};

}  // namespace

std::span<const Row> provided_rows() {
  return kRows;
}

}  // namespace flashback::emulator
