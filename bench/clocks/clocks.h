// A kernel with clocks: its PTX, in which each warp of CTA 0 notes when it passes a place. The kernel that
// the library launches is left as it is; a mark there is a comment, and nothing else.
//
// What a note costs, it costs twice: its own instructions, and that the assembler moves nothing past a
// reading of the clock. So a note is one instruction and a comparison that may stand anywhere: of 32 places
// each lane keeps the clock of one, and where the warp goes back in the text all lanes store at once. And
// there is none where a wait begins after a long stretch of arithmetic, which the assembler lets run on under
// the wait.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flashback::clocks {

// What a warp does where it makes a note, in this order; several things when they stand side by side.
struct Place {
  bool ends_wait = false;
  std::string section = {};  // that begins; empty: none does
  // Of the text without clocks: of the instruction that waits from here; 0: none.
  std::uint32_t waiting_line = 0;
};
inline constexpr std::uint32_t kNoClock = 0xffffffff;
inline constexpr std::uint32_t kBegin = 0, kEnd = 1;  // of a warp, in places: they are empty

enum class Where {
  kEnds,      // the begin and the end of each warp
  kSections,  // marks and waits too
};

struct ClockedKernel {
  std::string ptx;            // of this entry alone; empty where the text has no such entry
  std::vector<Place> places;  // begin, end, and the others in the order of the text
  std::size_t notes_at = 0;   // in the parameters, which end with Notes

  // Of a row: what a lane each notes, so many at a time.
  std::size_t row_words() const { return (places.size() - 2 + 31) / 32 * 32; }
};

// Where notes go, clocks of 32 bits: two words a warp for its begin and end, and rows of a word for each
// other place. Row n of warp w is number n * warps + w. A warp, or a lane that goes on alone, ends its row
// wherever it goes back in the text. Rows beyond the end are not made.
struct Notes {
  std::uint64_t ends;
  std::uint64_t begin, end;  // of the rows: addresses that differ in the lower halves only
};

ClockedKernel with_clocks(std::string_view ptx, std::string_view entry, int warps, Where where);

}  // namespace flashback::clocks
