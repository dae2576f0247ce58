// Where a section of a kernel's work begins, for those who draw its run: a comment in the PTX, which costs
// nothing, and from which the emulator takes the names in its timeline.
#pragma once

#define FLASHBACK_MARK(section) asm volatile("//@ " section)
