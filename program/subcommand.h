// Every subcommand adds itself to the command line and, when it is the one, leaves what main() shall do.
#pragma once

#include <functional>

#include "program/app.h"
#include "program/failure.h"

namespace flashback::program {

using Action = std::function<ExitCode()>;

void add_run(CLI::App& flashback, Action* chosen);
// Its own subcommand `forward`.
void add_run_forward(CLI::App& run, Action* chosen);
void add_plan(CLI::App& flashback, Action* chosen);
void add_list(CLI::App& flashback, Action* chosen);
void add_trace(CLI::App& flashback, Action* chosen);
void add_bench(CLI::App& flashback, Action* chosen);
void add_emulate(CLI::App& flashback, Action* chosen);
void add_check(CLI::App& flashback, Action* chosen);

}  // namespace flashback::program
