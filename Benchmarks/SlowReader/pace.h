// Code that the programs in C share: a sender at a steady pace, and a reader that sleeps for a while. The program of
// Nigh (`Nigh/main.swift`) does the same. `measure` runs them, and looks at their memory from outside.
//
//   PROGRAM read PORT AWAKE ASLEEP          reads, and sleeps ASLEEP seconds after AWAKE seconds
//   PROGRAM send PORT SIZE RATE SECONDS     sends RATE messages of SIZE bytes a second, as far as the library lets it
//
// All print times of the monotonic clock, which is the same for all processes of the machine.

#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/// The longest delay, in seconds, that the machine is taken to be the reason for.
#define PACE_DELAY 0.5

struct pace_options {
    int reads;
    const char *port;
    size_t size;
    double rate, seconds, awake, asleep;
};

static double pace_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pace_wait(double seconds) {
    if (seconds > 0) usleep((useconds_t)(seconds * 1e6));
}

static struct pace_options pace_begin(int count, char **words) {
    struct pace_options options = {0};
    options.reads = count == 5 && strcmp(words[1], "read") == 0;
    if (count > 2) options.port = words[2];
    if (options.reads) {
        options.awake = atof(words[3]);
        options.asleep = atof(words[4]);
    } else if (count == 6 && strcmp(words[1], "send") == 0) {
        options.size = (size_t)atol(words[3]);
        options.rate = atof(words[4]);
        options.seconds = atof(words[5]);
    } else {
        fprintf(stderr, "usage: %s read PORT AWAKE ASLEEP | send PORT SIZE RATE SECONDS\n", words[0]);
        exit(2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    return options;
}

/// Sends at the pace of `options`. `send` waits where the library waits. A message of one byte marks the end.
static void pace_send(const struct pace_options *options, void (*send)(const uint8_t *bytes, size_t size)) {
    uint8_t *bytes = malloc(options->size);
    memset(bytes, 7, options->size);
    uint64_t sent = 0;
    double begun = pace_now(), next = begun;
    while (next < begun + options->seconds) {
        send(bytes, options->size);
        sent += 1;
        double now = pace_now();
        printf("sent %.3f %llu\n", now, (unsigned long long)sent);
        // A busy machine may delay it, and then it catches up. Where the library held it back, it goes on at the same
        // pace.
        next += 1 / options->rate;
        if (now > next + PACE_DELAY) next = now;
        pace_wait(next - now);
    }
    send(bytes, 1);
    printf("sent %.3f %llu\n", pace_now(), (unsigned long long)sent);
}

/// Reads until the end. `receive` waits for a message, and returns its size.
static void pace_read(const struct pace_options *options, size_t (*receive)(void)) {
    uint64_t received = 0;
    double begun = 0;
    int has_slept = 0;
    while (receive() != 1) {
        received += 1;
        if (begun == 0) begun = pace_now();
        if (has_slept || pace_now() < begun + options->awake) continue;
        has_slept = 1;
        printf("asleep %.3f %llu\n", pace_now(), (unsigned long long)received);
        pace_wait(options->asleep);
        printf("awake %.3f %llu\n", pace_now(), (unsigned long long)received);
    }
    printf("received %.3f %llu\n", pace_now(), (unsigned long long)received);
}
