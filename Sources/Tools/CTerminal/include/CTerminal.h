#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

// A terminal that was taken over, and how it is given back whatever happens: a crash, a deadly signal, exit(). What runs then may only
// call what is safe in a signal handler, hence C. There is one such terminal in a process at a time.

enum { CTERMINAL_LONGEST_SEQUENCE = 256 };

/// What is needed to take a terminal and to give it back. The descriptors stay open until `cterminal_forget`.
struct cterminal_plan {
    int input;
    int output;
    /// Written to by handlers: 'W' when the size has changed, 'C' when the process goes on, 'T' when it is to stop.
    int notices;
    struct termios before;
    struct termios raw;
    uint8_t taking[CTERMINAL_LONGEST_SEQUENCE];
    size_t taking_length;
    uint8_t giving[CTERMINAL_LONGEST_SEQUENCE];
    size_t giving_length;
};

/// As pipe2(2), which Swift does not see: ends that neither block nor go on to other programs.
int cterminal_open_pipe(int ends[2]);

/// Remembers the plan and puts handlers in place; takes nothing yet. False if there is another plan already.
bool cterminal_prepare(const struct cterminal_plan *plan);

/// Sets the terminal up as the plan says; a terminal taken already is set up once more. Returns 0, or what went wrong.
int cterminal_take(void);

/// Gives the terminal back if it is taken. For any thread, and for signal handlers.
void cterminal_give_back(void);

/// Leaves the terminal as it is from now on, since it is somebody else's at the moment.
void cterminal_leave_alone(void);

/// Whether the terminal is taken.
bool cterminal_is_taken(void);

/// As write(2), but only while the terminal is taken: otherwise ECANCELED, and nothing is written. One thread at a time.
ssize_t cterminal_write(const uint8_t *bytes, size_t count);

/// Stops this process as Ctrl-Z does, on the calling thread, and returns when it goes on.
void cterminal_stop_process(void);

/// Lets go of the plan, and takes the handlers out again that are still in place.
void cterminal_forget(void);
