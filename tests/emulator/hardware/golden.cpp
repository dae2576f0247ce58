#include "tests/emulator/hardware/golden.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace flashback::emulator::testing {
namespace {

constexpr std::size_t kMostWords = 512;  // a longer buffer is kept as digests, unless it has a bound
constexpr std::size_t kDigestWords = 2048;

std::uint64_t word(const Buffer& buffer, const std::vector<std::byte>& bytes, std::size_t i) {
  std::uint64_t value = 0;
  const auto size = static_cast<std::size_t>(buffer.type.bytes);
  std::memcpy(&value, &bytes[i * size], size);
  return value;
}

std::uint64_t digest(const Buffer& buffer, const std::vector<std::byte>& bytes, std::size_t begin) {
  const std::size_t end = std::min(begin + kDigestWords, buffer.compared);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over words
  for (std::size_t i = begin; i < end; ++i) hash = (hash ^ word(buffer, bytes, i)) * 0x100000001b3;
  return hash;
}

bool is_digested(const Buffer& buffer) {
  return buffer.compared > kMostWords && buffer.units_in_last_place == 0;
}

std::string words_text(const Buffer& buffer, const std::vector<std::byte>& bytes) {
  std::string text = buffer.type.name;
  if (is_digested(buffer)) {
    text += fmt::format(" digest {}", kDigestWords);
    for (std::size_t i = 0; i < buffer.compared; i += kDigestWords)
      text += fmt::format(" {:016x}", digest(buffer, bytes, i));
    return text;
  }
  for (std::size_t i = 0, run; i < buffer.compared; i += run) {
    const std::uint64_t value = word(buffer, bytes, i);
    for (run = 1; i + run < buffer.compared && word(buffer, bytes, i + run) == value; ++run) {
    }
    text += run == 1 ? fmt::format(" {:x}", value) : fmt::format(" {:x}*{}", value, run);
  }
  return text;
}

std::string digest_difference(const Buffer& buffer, const std::vector<std::byte>& bytes,
                              std::istringstream& words) {
  std::string text, kept;
  std::size_t count = 0;
  words >> count;
  for (std::size_t i = 0; i < buffer.compared; i += kDigestWords) {
    if (!(words >> kept) || kept != fmt::format("{:016x}", digest(buffer, bytes, i)))
      text += fmt::format("{}: among words {} to {}\n", buffer.name, i, i + kDigestWords - 1);
  }
  return text;
}

std::string buffer_difference(const Buffer& buffer, const std::vector<std::byte>& bytes,
                              const std::string& kept) {
  std::istringstream words(kept);
  std::string type, entry;
  words >> type;
  if (is_digested(buffer)) {
    words >> entry;
    return digest_difference(buffer, bytes, words);
  }
  Field field;
  field.type = buffer.type;
  field.units_in_last_place = buffer.units_in_last_place;
  std::string text;
  std::size_t i = 0;
  while (words >> entry) {
    const std::size_t star = entry.find('*');
    const std::uint64_t expected = std::strtoull(entry.c_str(), nullptr, 16);
    std::size_t run = star == std::string::npos ? 1 : std::strtoull(&entry[star + 1], nullptr, 10);
    for (; run > 0 && i < buffer.compared; --run, ++i) {
      const std::uint64_t got = word(buffer, bytes, i);
      if (!agrees(got, expected, field))
        text += fmt::format("{}[{}] is {:#x}, on the H200 {:#x}\n", buffer.name, i, got, expected);
    }
  }
  if (i != buffer.compared)
    text += fmt::format("{}: {} words are compared, {} are kept\n", buffer.name, buffer.compared, i);
  return text;
}

}  // namespace

std::string golden_folder(const std::string& source) {
  return source + "/tests/emulator/hardware/golden";
}
std::string golden_path(const std::string& source, const std::string& experiment) {
  return fmt::format("{}/{}.txt", golden_folder(source), experiment);
}

std::optional<Golden> read_golden(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  Golden golden;
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("# of ", 0) == 0) {
      golden.fingerprint = std::strtoull(line.c_str() + 5, nullptr, 16);
    } else if (line.rfind("# ", 0) == 0) {
      golden.machine = line.substr(2);
    } else if (const std::size_t space = line.find(' '); space != std::string::npos) {
      golden.buffers[line.substr(0, space)] = line.substr(space + 1);
    }
  }
  return golden;
}

std::string golden_text(const std::string& machine, const Experiment& experiment, const Results& results) {
  std::string text = fmt::format("# {}\n# of {:016x}\n", machine, fingerprint(experiment));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Buffer& buffer = experiment.buffers[i];
    if (buffer.compared != 0) text += fmt::format("{} {}\n", buffer.name, words_text(buffer, results[i]));
  }
  return text;
}

std::string difference(const Golden& golden, const Experiment& experiment, const Results& results) {
  if (golden.fingerprint != fingerprint(experiment)) {
    return fmt::format("{} is not what the H200 ran: record it again there, or remove its golden file\n",
                       experiment.name);
  }
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Buffer& buffer = experiment.buffers[i];
    if (buffer.compared == 0) continue;
    const auto kept = golden.buffers.find(buffer.name);
    text += kept == golden.buffers.end() ? fmt::format("{} is not kept\n", buffer.name)
                                         : buffer_difference(buffer, results[i], kept->second);
  }
  return text;
}

std::string difference(const Experiment& experiment, const Results& right, const Results& results) {
  constexpr int kMostShown = 8;  // of a buffer
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Buffer& buffer = experiment.buffers[i];
    Field field;
    field.type = buffer.type;
    field.units_in_last_place = buffer.units_in_last_place;
    int count = 0;
    for (std::size_t n = 0; n < buffer.compared; ++n) {
      const std::uint64_t expected = word(buffer, right[i], n), got = word(buffer, results[i], n);
      if (!agrees(got, expected, field) && count++ < kMostShown)
        text += fmt::format("{}[{}] is {:#x}, expected {:#x}\n", buffer.name, n, got, expected);
    }
    if (count > kMostShown) text += fmt::format("{}: {} words differ\n", buffer.name, count);
  }
  return text;
}

}  // namespace flashback::emulator::testing
