#define _GNU_SOURCE
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t was_interrupted;

static void interrupted(int number) {
    (void)number;
    was_interrupted = 1;
}

void benchmark_catch_interrupts(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupted;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool benchmark_was_interrupted(void) { return was_interrupted != 0; }

int benchmark_processors(void) {
    cpu_set_t all;
    return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
}

static pid_t spawn(char *const *arguments, int input, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    pid_t identifier = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if (posix_spawnp(&identifier, arguments[0], &actions, &attributes, arguments, environ) != 0) identifier = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return identifier;
}

/// The number that the kernel has given to the processor which is at `index` among those in the set, or -1.
static int number_of_processor(int index, const cpu_set_t *set) {
    for (int number = 0; number < CPU_SETSIZE; number++) {
        if (CPU_ISSET(number, set) && index-- == 0) return number;
    }
    return -1;
}

struct benchmark_process benchmark_start(char *const *arguments, int processor) {
    struct benchmark_process process = {.identifier = -1, .input = -1, .output = -1};
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0) return process;
    if (pipe2(output, O_CLOEXEC) != 0) {
        close(input[0]);
        close(input[1]);
        return process;
    }
    // The started program inherits the processors that it may run on.
    cpu_set_t all, one;
    bool is_placed = processor < 0;
    if (processor >= 0 && sched_getaffinity(0, sizeof all, &all) == 0) {
        int number = number_of_processor(processor, &all);
        CPU_ZERO(&one);
        if (number >= 0) CPU_SET(number, &one);
        is_placed = sched_setaffinity(0, sizeof one, &one) == 0;
    }
    if (is_placed) process.identifier = spawn(arguments, input[0], output[1]);
    if (is_placed && processor >= 0) sched_setaffinity(0, sizeof all, &all);
    close(input[0]);
    close(output[1]);
    process.input = input[1];
    process.output = output[0];
    return process;
}

int benchmark_wait(pid_t identifier, int milliseconds) {
    for (int waited = 0;; waited++) {
        int status;
        pid_t ended = waitpid(identifier, &status, WNOHANG);
        if (ended == identifier) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended < 0 || waited >= milliseconds) return -1;
        struct timespec millisecond = {.tv_nsec = 1000000};
        nanosleep(&millisecond, NULL);
    }
}
