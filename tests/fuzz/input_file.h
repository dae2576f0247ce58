// The fuzzer's bytes as a file, for what reads files.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace flashback::fuzz {

class InputFile {
 public:
  InputFile(const std::uint8_t* data, std::size_t size)
      : path_(std::filesystem::temp_directory_path() / ("flashback_fuzz_" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  ~InputFile() { std::filesystem::remove(path_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

}  // namespace flashback::fuzz
