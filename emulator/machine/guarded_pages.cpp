#include "emulator/machine/guarded_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace flashback::emulator {
namespace {

// Allocations above this size cost host memory only where they are written.
constexpr std::size_t kPiece = 16 << 20;

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t mapped_bytes(std::size_t bytes) {
  return (bytes + page() - 1) / page() * page() + 2 * page();
}

// A file in memory that holds a piece of 0xff bytes; -1 when the host has none. Open as long as the process
// lives.
int make_pattern() {
  const int file = memfd_create("0xff", MFD_CLOEXEC);
  if (file < 0) return -1;
  void* bytes = MAP_FAILED;
  if (ftruncate(file, kPiece) == 0) bytes = mmap(nullptr, kPiece, PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) {
    close(file);
    return -1;
  }
  std::memset(bytes, 0xff, kPiece);
  munmap(bytes, kPiece);
  return file;
}

// Pages that read as 0xff and are copied when they are written.
bool map_pattern(std::byte* first, std::size_t bytes) {
  static const int pattern = make_pattern();
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t piece = std::min(kPiece, bytes - at);
    if (mmap(first + at, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, pattern, 0) == MAP_FAILED) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::byte* map_guarded_pages(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const std::size_t all = mapped_bytes(bytes), inner = all - 2 * page();
  void* mapping = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  std::byte* first = static_cast<std::byte*>(mapping) + page();
  const bool large = bytes > kPiece;
  if (large ? !map_pattern(first, inner) : mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, all);
    return nullptr;
  }
  if (!large) std::memset(first, 0xff, bytes);
  return first;
}

void unmap_guarded_pages(std::byte* memory, std::size_t bytes) {
  munmap(memory - page(), mapped_bytes(bytes));
}

}  // namespace flashback::emulator
