// Any file: tensors that lie in it, or a sentence that says what is wrong with it.
#include "program/safetensors.h"

#include <cstdlib>
#include <vector>

#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flashback::program::SafetensorsFile;
  const flashback::fuzz::InputFile input(data, size);
  SafetensorsFile file;
  const flashback::Status opened = SafetensorsFile::open(input.path(), &file);
  if (opened.ok() != opened.sentence().empty()) std::abort();
  if (!opened.ok()) return 0;
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    if (entry.offset + entry.bytes > size) std::abort();
    std::vector<std::byte> bytes(entry.bytes);
    if (!file.read(entry, bytes).ok()) std::abort();
  }
  return 0;
}
