#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

// A terminal that was taken over and is given back whatever happens: a crash, a fatal signal, exit(). The code that
// runs then may call only what is safe in a signal handler, so it is written in C. A process has one such terminal at a
// time.

enum { CTERMINAL_LONGEST_SEQUENCE = 256 };

/// The state for taking a terminal over and giving it back. The descriptors stay open until `cterminal_forget`.
struct cterminal_plan {
    int input;
    int output;
    /// The pipe that handlers write to: 'W' when the size has changed, 'C' when the process continues, 'T' when it has
    /// to stop.
    int notices;
    struct termios before;
    struct termios raw;
    uint8_t taking[CTERMINAL_LONGEST_SEQUENCE];
    size_t taking_length;
    uint8_t giving[CTERMINAL_LONGEST_SEQUENCE];
    size_t giving_length;
};

/// Like pipe2(2), which Swift does not see: both ends are non-blocking and close-on-exec.
int cterminal_open_pipe(int ends[2]);

/// Stores the plan and installs the handlers, but does not take the terminal yet. Returns false if there is another
/// plan already.
bool cterminal_prepare(const struct cterminal_plan *plan);

/// Sets the terminal up as the plan says, again if it is taken already. Does nothing if a signal or exit() is ending
/// the process. Returns 0 or an error number.
int cterminal_take(void);

/// Gives the terminal back if it is taken; if another thread is doing that, waits until it is done. Any thread and any
/// signal handler may call this.
void cterminal_give_back(void);

/// From now on leaves the terminal as it is, because another process is using it at the moment.
void cterminal_leave_alone(void);

/// Returns whether the terminal is taken.
bool cterminal_is_taken(void);

/// Like write(2), but only while the terminal is taken. Otherwise it fails with ECANCELED and writes nothing. Only one
/// thread at a time may call this.
ssize_t cterminal_write(const uint8_t *bytes, size_t count);

/// Stops this process on the calling thread, as Ctrl-Z does, and returns when the process continues.
void cterminal_stop_process(void);

/// Drops the plan, and removes the handlers that are still in place.
void cterminal_forget(void);
