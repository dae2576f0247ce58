// Found before the project's own: kernels without marks.
#pragma once

#define FLASHBACK_MARK(section)
