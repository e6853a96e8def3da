// Gives a terminal back whatever happens. All that runs in a signal handler here keeps to what POSIX lists as safe there.

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
static atomic_bool is_taken;
static atomic_bool is_writing;

// How long giving back waits for a terminal that takes nothing, or for somebody who is writing to it.
enum { PATIENCE_IN_MILLISECONDS = 100 };

// Crashes: whoever handled them before does so afterwards.
static const int crashes[] = {SIGSEGV, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSYS};
// What ends a process that does not care for it. Where somebody does, it is for them to give the terminal back in good order.
static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
static const int notices[] = {SIGWINCH, SIGCONT, SIGTSTP};

enum {
    CRASHES = sizeof crashes / sizeof *crashes,
    ENDS = sizeof ends / sizeof *ends,
    NOTICES = sizeof notices / sizeof *notices,
};

// What was in place before, by signal.
static struct sigaction former[_NSIG];

// MARK: Giving back and taking

static void pause_for_a_millisecond(void) { poll(NULL, 0, 1); }

// Writes all of it, unless the terminal takes nothing for too long or is gone.
static void write_all(const uint8_t *bytes, size_t count) {
    int patience = PATIENCE_IN_MILLISECONDS;
    while (count > 0 && patience > 0) {
        ssize_t written = write(plan.output, bytes, count);
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            pause_for_a_millisecond();
            patience--;
        } else if (written == 0 || errno != EINTR) {
            return;
        }
    }
}

// In the background, setting a terminal up stops the process, unless that signal is blocked.
static int set_attributes(const struct termios *attributes) {
    int result;
    do {
        result = tcsetattr(plan.input, TCSANOW, attributes);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

void cterminal_give_back(void) {
    if (!atomic_exchange(&is_taken, false)) return;
    int error = errno;
    for (int patience = PATIENCE_IN_MILLISECONDS; atomic_load(&is_writing) && patience > 0; patience--) {
        pause_for_a_millisecond();
    }
    sigset_t background, masked;
    sigemptyset(&background);
    sigaddset(&background, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &background, &masked);
    write_all(plan.giving, plan.giving_length);
    // What was typed and not read was not meant for whoever reads next.
    tcflush(plan.input, TCIFLUSH);
    set_attributes(&plan.before);
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    errno = error;
}

int cterminal_take(void) {
    // From here on there is something to give back.
    atomic_store(&is_taken, true);
    int error = set_attributes(&plan.raw);
    if (error != 0) {
        atomic_store(&is_taken, false);
        return error;
    }
    write_all(plan.taking, plan.taking_length);
    return 0;
}

void cterminal_leave_alone(void) { atomic_store(&is_taken, false); }

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
    cterminal_give_back();
    struct sigaction *action = &former[number];
    sigaction(number, action, NULL);
    call(action, number, info, context);
    // A fault happens again on return, but a signal that was sent does not. It stays blocked until then.
    struct sigaction now;
    if (sigaction(number, NULL, &now) == 0 && !is_function(&now)) raise(number);
}

static void notice(int number, siginfo_t *info, void *context) {
    int error = errno;
    char letter = number == SIGWINCH ? 'W' : number == SIGCONT ? 'C' : 'T';
    // A pipe that is full has notices enough.
    ssize_t written = write(plan.notices, &letter, 1);
    (void)written;
    call(&former[number], number, info, context);
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
        if (is_ours(numbers[index])) sigaction(numbers[index], &former[numbers[index]], NULL);
    }
}

bool cterminal_prepare(const struct cterminal_plan *chosen) {
    if (atomic_exchange(&is_prepared, true)) return false;
    plan = *chosen;
    static atomic_bool gives_back_at_exit;
    if (!atomic_exchange(&gives_back_at_exit, true)) atexit(cterminal_give_back);
    for (size_t index = 0; index < CRASHES; index++) {
        sigaction(crashes[index], NULL, &former[crashes[index]]);
        // A handler that was in place may need its stack: a crash may be that of a stack that is full.
        install(crashes[index], die, SA_ONSTACK);
    }
    for (size_t index = 0; index < ENDS; index++) {
        sigaction(ends[index], NULL, &former[ends[index]]);
        if (!is_function(&former[ends[index]]) && former[ends[index]].sa_handler == SIG_DFL) {
            install(ends[index], die, 0);
        }
    }
    for (size_t index = 0; index < NOTICES; index++) {
        sigaction(notices[index], NULL, &former[notices[index]]);
        // Whoever ignores being stopped goes on doing so.
        bool stops = notices[index] == SIGTSTP;
        if (stops && former[SIGTSTP].sa_handler == SIG_IGN) continue;
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
