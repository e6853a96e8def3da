// Gives a terminal back whatever happens. Code that runs in a signal handler here uses only what POSIX lists as safe
// there.

#define _GNU_SOURCE
#include "CTerminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cterminal_plan plan;
static atomic_bool is_prepared;
// Whether output may be written to the terminal.
static atomic_bool is_taken;
static atomic_bool is_writing;
// Whether the terminal has to be given back: from before it is taken until it is as it was.
static atomic_bool is_owed;
// The thread that is taking the terminal or giving it back; 0 if there is none.
static _Atomic pid_t changing_thread;
// Whether the process is ending. Then the terminal is not taken any more.
static atomic_bool is_ending;

// How long giving back waits for a terminal that accepts no output, or for a thread that is writing to it.
enum { TIMEOUT_IN_MILLISECONDS = 100 };
// How long a thread waits for another one that is taking the terminal or giving it back. That one may wait twice.
enum { TURN_IN_MILLISECONDS = 3 * TIMEOUT_IN_MILLISECONDS };

// Crashes. A handler that was there before runs afterwards.
static const int crashes[] = {SIGSEGV, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSYS};
// Signals that end a process which does not handle them. A process that handles them has to give the terminal back
// itself.
static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
static const int notices[] = {SIGWINCH, SIGCONT, SIGTSTP};

enum {
    CRASHES = sizeof crashes / sizeof *crashes,
    ENDS = sizeof ends / sizeof *ends,
    NOTICES = sizeof notices / sizeof *notices,
};

// The actions that were in place before, by signal.
static struct sigaction previous[_NSIG];

// MARK: Giving back and taking

static void pause_for_a_millisecond(void) { poll(NULL, 0, 1); }

// Writes all bytes, unless the terminal accepts nothing for too long or is gone.
static void write_all(const uint8_t *bytes, size_t count) {
    int left = TIMEOUT_IN_MILLISECONDS;
    while (count > 0 && left > 0) {
        ssize_t written = write(plan.output, bytes, count);
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            pause_for_a_millisecond();
            left--;
        } else if (written == 0 || errno != EINTR) {
            return;
        }
    }
}

// Setting up a terminal from the background stops the process, unless SIGTTOU is blocked.
static int set_attributes(const struct termios *attributes) {
    int result;
    do {
        result = tcsetattr(plan.input, TCSANOW, attributes);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

// Waits until no other thread is taking the terminal or giving it back. Otherwise a signal could end the process when
// the other one has only done half of that. Returns false if the other one takes too long, or if a handler has
// interrupted this thread itself in the middle: then everything is done again.
static bool begin_turn(void) {
    pid_t self = gettid();
    for (int left = TURN_IN_MILLISECONDS; left > 0; left--) {
        pid_t other = 0;
        if (atomic_compare_exchange_strong(&changing_thread, &other, self)) return true;
        if (other == self) return false;
        pause_for_a_millisecond();
    }
    return false;
}

static void end_turn(bool has_begun) {
    if (has_begun) atomic_store(&changing_thread, 0);
}

static void give_back(void) {
    atomic_store(&is_taken, false);
    for (int left = TIMEOUT_IN_MILLISECONDS; atomic_load(&is_writing) && left > 0; left--) {
        pause_for_a_millisecond();
    }
    sigset_t background, masked;
    sigemptyset(&background);
    sigaddset(&background, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &background, &masked);
    write_all(plan.giving, plan.giving_length);
    // Input that was typed and not read was not meant for the next program that reads.
    tcflush(plan.input, TCIFLUSH);
    set_attributes(&plan.before);
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    atomic_store(&is_owed, false);
}

void cterminal_give_back(void) {
    int error = errno;
    bool has_begun = begin_turn();
    if (atomic_load(&is_owed)) give_back();
    end_turn(has_begun);
    errno = error;
}

static void give_back_for_good(void) {
    atomic_store(&is_ending, true);
    cterminal_give_back();
}

int cterminal_take(void) {
    bool has_begun = begin_turn();
    int error = 0;
    if (!atomic_load(&is_ending)) {
        atomic_store(&is_owed, true);
        error = set_attributes(&plan.raw);
        atomic_store(&is_owed, error == 0);
        atomic_store(&is_taken, error == 0);
        if (error == 0) write_all(plan.taking, plan.taking_length);
    }
    end_turn(has_begun);
    return error;
}

void cterminal_leave_alone(void) {
    atomic_store(&is_taken, false);
    atomic_store(&is_owed, false);
}

bool cterminal_is_taken(void) { return atomic_load(&is_taken); }

ssize_t cterminal_write(const uint8_t *bytes, size_t count) {
    ssize_t written = -1;
    int error = ECANCELED;
    atomic_store(&is_writing, true);
    if (atomic_load(&is_taken)) {
        written = write(plan.output, bytes, count);
        error = errno;
    }
    atomic_store(&is_writing, false);
    errno = error;
    return written;
}

int cterminal_open_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); }

// MARK: Handlers

static bool is_function(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) != 0
        || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void call(const struct sigaction *action, int number, siginfo_t *info, void *context) {
    if (!is_function(action)) return;
    if ((action->sa_flags & SA_SIGINFO) != 0) {
        action->sa_sigaction(number, info, context);
    } else {
        action->sa_handler(number);
    }
}

static void die(int number, siginfo_t *info, void *context) {
    give_back_for_good();
    struct sigaction *action = &previous[number];
    sigaction(number, action, NULL);
    call(action, number, info, context);
    // A fault happens again on return, but a signal that was sent does not, so it is raised again. It stays blocked
    // until the return.
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && !is_function(&now)) raise(number);
}

static void notice(int number, siginfo_t *info, void *context) {
    int error = errno;
    char letter = number == SIGWINCH ? 'W' : number == SIGCONT ? 'C' : 'T';
    // A full pipe contains enough notices.
    ssize_t written = write(plan.notices, &letter, 1);
    (void)written;
    call(&previous[number], number, info, context);
    errno = error;
}

static void install(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static bool is_ours(int number) {
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO) == 0) return false;
    return now.sa_sigaction == die || now.sa_sigaction == notice;
}

static void uninstall(const int *numbers, size_t count) {
    for (size_t index = 0; index < count; index++) {
        if (is_ours(numbers[index])) sigaction(numbers[index], &previous[numbers[index]], NULL);
    }
}

bool cterminal_prepare(const struct cterminal_plan *chosen) {
    if (atomic_exchange(&is_prepared, true)) return false;
    plan = *chosen;
    static atomic_bool gives_back_at_exit;
    if (!atomic_exchange(&gives_back_at_exit, true)) atexit(give_back_for_good);
    for (size_t index = 0; index < CRASHES; index++) {
        sigaction(crashes[index], NULL, &previous[crashes[index]]);
        // An earlier handler may need its alternate stack, because the crash may be a stack overflow.
        install(crashes[index], die, SA_ONSTACK);
    }
    for (size_t index = 0; index < ENDS; index++) {
        sigaction(ends[index], NULL, &previous[ends[index]]);
        if (!is_function(&previous[ends[index]]) && previous[ends[index]].sa_handler == SIG_DFL) {
            install(ends[index], die, 0);
        }
    }
    for (size_t index = 0; index < NOTICES; index++) {
        sigaction(notices[index], NULL, &previous[notices[index]]);
        // A process that ignores SIGTSTP continues to ignore it.
        bool stops = notices[index] == SIGTSTP;
        if (stops && previous[SIGTSTP].sa_handler == SIG_IGN) continue;
        install(notices[index], notice, SA_RESTART);
    }
    return true;
}

void cterminal_stop_process(void) {
    struct sigaction ours, standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigset_t stop, masked;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigaction(SIGTSTP, &standard, &ours);
    pthread_sigmask(SIG_UNBLOCK, &stop, &masked);
    raise(SIGTSTP);
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    sigaction(SIGTSTP, &ours, NULL);
}

void cterminal_forget(void) {
    uninstall(crashes, CRASHES);
    uninstall(ends, ENDS);
    uninstall(notices, NOTICES);
    atomic_store(&is_prepared, false);
}
