#include "device/ptx_text.h"

#define ZLIB_CONST  // what it reads it does not write
#include <fmt/format.h>
#include <zlib.h>

#include <cstring>

namespace flashback {
namespace {

// A gzip member begins with these two bytes and ends with the length of its content, modulo 2^32.
constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::size_t kLeastBytes = 18, kMostToOne = 1032;  // deflate does no better

std::size_t content_bytes(std::string_view member) {
  std::uint32_t bytes;
  std::memcpy(&bytes, member.end() - sizeof bytes, sizeof bytes);
  return bytes;
}

}  // namespace

Status ptx_text(std::string_view ptx, std::string* text) {
  if (!ptx.starts_with(kGzip)) {
    *text = ptx;
    return {};
  }
  const auto damaged = [&](std::size_t at) {
    return invalid(fmt::format("compressed PTX of {} bytes is damaged at byte {}; it must be one gzip member",
                               ptx.size(), at));
  };
  if (ptx.size() < kLeastBytes) return damaged(ptx.size());
  const std::size_t bytes = content_bytes(ptx);
  if (bytes / kMostToOne > ptx.size()) return damaged(ptx.size() - sizeof(std::uint32_t));
  text->resize(bytes);
  constexpr int kWithGzipHeader = 16 + MAX_WBITS;
  z_stream stream = {};
  stream.next_in = reinterpret_cast<const Bytef*>(ptx.data());
  stream.avail_in = static_cast<uInt>(ptx.size());
  stream.next_out = reinterpret_cast<Bytef*>(text->data());
  stream.avail_out = static_cast<uInt>(text->size());
  if (inflateInit2(&stream, kWithGzipHeader) != Z_OK)
    return device_failure("the host has no memory to decompress PTX");
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  const bool whole = result == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
  return whole ? Status() : damaged(stream.total_in);
}

}  // namespace flashback
