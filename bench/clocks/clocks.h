// A kernel with clocks: its PTX, in which the first lane of each warp of CTA 0 notes when it passes a place.
// The kernel that the library launches is left as it is; a mark there is a comment, and nothing else.
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

enum class Where {
  kEnds,      // the begin and the end of each warp
  kSections,  // marks and waits too
};

struct ClockedKernel {
  std::string ptx;            // of this entry alone; empty where the text has no such entry
  std::vector<Place> places;  // those of begin and end are empty
  std::size_t notes_at = 0;   // in the parameters, which end with Notes
};

// Where rows of notes may lie, a clock of 32 bits for each place. Row n of warp w is number n * warps + w. A
// warp's row ends with the begin of a section; of a place that it passes twice before, the last time stays.
// Rows beyond the end are not made.
struct Notes {
  std::uint64_t begin, end;  // addresses, which differ in the lower halves only
};

ClockedKernel with_clocks(std::string_view ptx, std::string_view entry, int warps, Where where);

}  // namespace flashback::clocks
