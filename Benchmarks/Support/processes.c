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
    sched_getaffinity(0, sizeof all, &all);
    if (processor >= 0) {
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    process.identifier = spawn(arguments, input[0], output[1]);
    if (processor >= 0) sched_setaffinity(0, sizeof all, &all);
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
