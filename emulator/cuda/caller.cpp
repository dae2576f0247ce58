#include "emulator/cuda/caller.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>

namespace flashback::emulator::cuda {
namespace {

namespace fs = std::filesystem;

struct Place {
  fs::path object;            // the program or a library
  std::uintptr_t offset = 0;  // of an instruction in it
};

// Of the call that returns to `address`.
Place place_of(const void* address) {
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  return {info.dli_fname,
          reinterpret_cast<std::uintptr_t>(address) - 1 - reinterpret_cast<std::uintptr_t>(info.dli_fbase)};
}

// The first frame that lies in none of our libraries, which share a folder.
Place caller() {
  std::array<void*, 64> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  const fs::path ours = place_of(reinterpret_cast<const void*>(&place_of_caller)).object.parent_path();
  for (int i = 0; i < count; ++i) {
    Place place = place_of(frames[static_cast<std::size_t>(i)]);
    if (!place.object.empty() && place.object.parent_path() != ours) return place;
  }
  return {};
}

// "main.cu:12", or nothing.
std::string source_line(const Place& place) {
  std::array<char, 4096> line{};
  const std::string command =
      fmt::format("addr2line -e '{}' {:#x} 2>/dev/null", fs::absolute(place.object).string(), place.offset);
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  const bool read = std::fgets(line.data(), line.size(), pipe) != nullptr;
  pclose(pipe);
  std::string text = fs::path(line.data()).filename().string();
  text.resize(std::min(text.find_first_of(" \n"), text.size()));  // behind it: "(discriminator 2)"
  const bool known =
      read && text.find('?') == text.npos && text.find(':') != text.npos && !text.ends_with(":0");
  return known ? text : std::string();
}

}  // namespace

std::string place_of_caller() {
  const Place place = caller();
  if (place.object.empty()) return {};
  const std::string line = source_line(place);
  return line.empty() ? fmt::format("{}+{:#x}", place.object.filename().string(), place.offset) : line;
}

}  // namespace flashback::emulator::cuda
