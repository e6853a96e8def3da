// Starts and watches programs, for the driver. Swift cannot call these functions itself, or only with many lines.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

/// A started program: write to `input`, read from `output`.
struct benchmark_process {
    pid_t identifier;
    int input;
    int output;
};

/// Starts a program on one processor, or on any if `processor` is negative. Processors are counted from 0 among those that this
/// process may use. If that fails, the identifier is negative.
struct benchmark_process benchmark_start(char *const *arguments, int processor);

/// Returns the number of processors that this process may use.
int benchmark_processors(void);

/// From now on an interrupt or a request to end is only remembered, and ends a waiting system call.
void benchmark_catch_interrupts(void);
bool benchmark_was_interrupted(void);

/// Waits for the program to end, for at most `milliseconds`. Returns its exit status, 128 plus the signal that ended
/// it, or -1.
int benchmark_wait(pid_t identifier, int milliseconds);
