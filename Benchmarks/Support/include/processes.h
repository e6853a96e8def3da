// Starting programs and watching them, for the driver: what Swift cannot call itself or would need many lines for.

#pragma once

#include <stdbool.h>
#include <sys/types.h>

/// A program that was started: write to `input`, read from `output`.
struct benchmark_process {
    pid_t identifier;
    int input;
    int output;
};

/// Starts a program on one processor, or on any if `processor` is negative. The identifier is negative where that fails.
struct benchmark_process benchmark_start(char *const *arguments, int processor);

/// How many processors there are.
int benchmark_processors(void);

/// From now on an interrupt or a request to end is only remembered, and whoever waits is woken.
void benchmark_catch_interrupts(void);
bool benchmark_was_interrupted(void);

/// Waits until the program has ended, at most so many milliseconds; its exit status, 128 and the signal where one ended it, or -1.
int benchmark_wait(pid_t identifier, int milliseconds);
