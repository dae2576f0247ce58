// The order in which persistent CTAs take tiles of sequences that are all alike. Plain C++.
#pragma once

namespace flashback::shared {

// Heads of all sequences are cut into sections of `section`; the tickets of a section run through its heads
// before they go on to the next tile.
struct Share {
  int tile, head;  // the head among all heads of all sequences
};
constexpr Share share_of(int ticket, int section, int tiles, int all_heads) {
  const int of_section = section * tiles;
  const int first = ticket / of_section * section, rest = ticket % of_section;
  const int heads = section < all_heads - first ? section : all_heads - first;
  return {rest / heads, first + rest % heads};
}

}  // namespace flashback::shared
