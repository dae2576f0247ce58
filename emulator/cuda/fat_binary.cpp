#include "emulator/cuda/fat_binary.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>

#include "emulator/cuda/error.h"

namespace flashback::emulator::cuda {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;

template <class T>
T read(const std::byte* from, std::size_t offset) {
  T value;
  std::memcpy(&value, from + offset, sizeof value);
  return value;
}

// What a PTX text says in `.target`; empty when it says nothing.
std::string_view target_of(std::string_view ptx) {
  constexpr std::string_view kDirective = ".target ";
  const std::size_t at = ptx.find(kDirective);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = ptx.find_first_not_of(' ', at + kDirective.size());
  return ptx.substr(begin, ptx.find_first_of(", \t\r\n", begin) - begin);
}

// How well `gpu` runs PTX of this target; 0: not at all.
int fitness(std::string_view target, const Gpu& gpu) {
  constexpr std::string_view kPrefix = "sm_";
  if (!target.starts_with(kPrefix)) return 0;
  int number = 0;
  const char* end = target.data() + target.size();
  const auto parsed = std::from_chars(target.data() + kPrefix.size(), end, number);
  const std::string_view suffix(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  const int own = 10 * gpu.capability_major + gpu.capability_minor;
  if (suffix == "a") return number == own ? 10002 : 0;
  if (suffix == "f") return number / 10 == gpu.capability_major && number <= own ? 10001 : 0;
  return number <= own ? number : 0;
}

}  // namespace

bool is_fat_binary(const void* image) {
  return read<std::uint32_t>(static_cast<const std::byte*>(image), 0) == kMagic;
}

bool runs(std::string_view target, const Gpu& gpu) {
  return fitness(target, gpu) != 0;
}

std::string_view choose_ptx(const void* fat_binary, const Gpu& gpu) {
  const auto* container = static_cast<const std::byte*>(fat_binary);
  if (!is_fat_binary(container)) refuse(Error::kInvalidImage, "a fat binary without its magic number");
  const std::byte* entry = container + read<std::uint16_t>(container, 6);
  const std::byte* end = entry + read<std::uint64_t>(container, 8);
  std::string_view best;
  int best_fitness = 0;
  std::string seen;
  bool compressed_fits = false;
  while (entry < end) {
    const bool is_ptx = read<std::uint16_t>(entry, 0) == 1;
    const auto header = read<std::uint32_t>(entry, 4);
    const auto bytes = read<std::uint64_t>(entry, 8);
    const bool compressed = read<std::uint32_t>(entry, 16) != 0;
    const auto architecture = read<std::uint32_t>(entry, 28);
    std::string_view ptx(reinterpret_cast<const char*>(entry + header), bytes);
    if (is_ptx && !compressed) {
      ptx = ptx.substr(0, ptx.find('\0'));  // padded with zeros
      const int fits = fitness(target_of(ptx), gpu);
      if (fits > best_fitness) {
        best = ptx;
        best_fitness = fits;
      }
    }
    compressed_fits |= is_ptx && compressed &&
                       static_cast<int>(architecture) <= 10 * gpu.capability_major + gpu.capability_minor;
    seen +=
        fmt::format("{}{} for {}", seen.empty() ? "" : ", ",
                    !is_ptx ? "machine code" : (compressed ? "compressed PTX" : "PTX"),
                    is_ptx && !compressed ? std::string(target_of(ptx)) : fmt::format("sm_{}", architecture));
    entry += header + bytes;
  }
  if (best_fitness != 0) return best;
  refuse(Error::kNoBinaryForGpu,
         fmt::format(
             "the program carries no PTX that an emulated {0} can run (it carries {1}){2}; build it with "
             "-gencode arch=compute_{3},code=compute_{3} --no-compress",
             gpu.name, seen.empty() ? "nothing" : seen,
             compressed_fits ? ", and what nvcc has compressed is not read" : "",
             gpu.arch == Arch::kSm100 ? "100a" : "90a"));
}

}  // namespace flashback::emulator::cuda
