// NNG: a PAIR0 socket as it is by default, except that it accepts messages of any size.

#include "pace.h"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

static nng_socket pair;

static void demand(int status, const char *what) {
    if (status == 0) return;
    fprintf(stderr, "%s: %s\n", what, nng_strerror(status));
    exit(1);
}

static void post(const uint8_t *bytes, size_t size) {
    demand(nng_send(pair, (void *)bytes, size, 0), "nng_send");
}

static size_t receive(void) {
    nng_msg *message;
    demand(nng_recvmsg(pair, &message, 0), "nng_recvmsg");
    size_t size = nng_msg_len(message);
    nng_msg_free(message);
    return size;
}

static int setting(const char *option) {
    int value;
    demand(nng_socket_get_int(pair, option, &value), option);
    return value;
}

int main(int count, char **words) {
    struct pace_options options = pace_begin(count, words);
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%s", options.port);
    demand(nng_pair0_open(&pair), "nng_pair0_open");
    if (options.reads) {
        printf("version %s\n", nng_version());
        printf(
            "settings NNG_OPT_SENDBUF %d messages, NNG_OPT_RECVBUF %d messages\n", setting(NNG_OPT_SENDBUF),
            setting(NNG_OPT_RECVBUF));
        nng_listener listener;
        demand(nng_listener_create(&listener, pair, address), "nng_listener_create");
        demand(nng_listener_set_size(listener, NNG_OPT_RECVMAXSZ, 0), "NNG_OPT_RECVMAXSZ");
        demand(nng_listener_start(listener, 0), "nng_listener_start");
        pace_read(&options, receive);
    } else {
        demand(nng_dial(pair, address, NULL, 0), "nng_dial");
        pace_send(&options, post);
        // Closing drops what is not sent yet, the mark of the end included.
        pace_wait(1);
    }
    nng_close(pair);
    return 0;
}
