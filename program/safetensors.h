// Files of named tensors in the safetensors format: 8 bytes of little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the data. Reading trusts nothing in the file; writing never
// leaves half of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/status.h"

namespace flashback::program {

// "(2, 128, 4, 64)"
std::string format_shape(std::span<const std::int64_t> shape);

class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string dtype;  // as the format spells it: "BF16", "F32", ...
    std::vector<std::int64_t> shape;
    std::uint64_t offset, bytes;  // in the file
  };

  // Reads and checks the whole header: known dtypes, sizes that agree with shapes, data without overlap or
  // gap to the very end of the file. Nothing is returned of a file that breaks one rule.
  static Status open(const std::filesystem::path& path, SafetensorsFile* file);

  // Null when there is no such tensor.
  const Entry* find(std::string_view name) const;
  const std::vector<Entry>& entries() const { return entries_; }
  // `data` has the entry's bytes.
  Status read(const Entry& entry, std::span<std::byte> data);

 private:
  std::filesystem::path path_;
  std::ifstream stream_;
  std::vector<Entry> entries_;  // in the order of their data
};

struct OutgoingTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

// Writes to a temporary file beside `path` and renames it at the end: `path` holds its old content or all of
// the new.
class SafetensorsWriter {
 public:
  SafetensorsWriter() = default;
  ~SafetensorsWriter();  // removes the temporary file unless it was committed
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // Creates the temporary file, so that a path which cannot be written is refused before any work is done.
  Status open(const std::filesystem::path& path);
  Status commit(std::span<const OutgoingTensor> tensors);

 private:
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

}  // namespace flashback::program
