// ZeroMQ: a PAIR socket as it is by default.

#include "pace.h"

#include <zmq.h>

static void *pair;

static void demand(int is_good, const char *what) {
    if (is_good) return;
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static void post(const uint8_t *bytes, size_t size) {
    demand(zmq_send(pair, bytes, size, 0) >= 0, "zmq_send");
}

static size_t receive(void) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    demand(zmq_msg_recv(&message, pair, 0) >= 0, "zmq_msg_recv");
    size_t size = zmq_msg_size(&message);
    zmq_msg_close(&message);
    return size;
}

static int setting(int option) {
    int value = 0;
    size_t size = sizeof value;
    demand(zmq_getsockopt(pair, option, &value, &size) == 0, "zmq_getsockopt");
    return value;
}

int main(int count, char **words) {
    struct pace_options options = pace_begin(count, words);
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%s", options.port);
    void *context = zmq_ctx_new();
    pair = zmq_socket(context, ZMQ_PAIR);
    demand(pair != NULL, "zmq_socket");
    if (options.reads) {
        int major, minor, patch;
        zmq_version(&major, &minor, &patch);
        printf("version %d.%d.%d\n", major, minor, patch);
        printf("settings ZMQ_SNDHWM %d messages, ZMQ_RCVHWM %d messages\n", setting(ZMQ_SNDHWM), setting(ZMQ_RCVHWM));
        demand(zmq_bind(pair, endpoint) == 0, "zmq_bind");
        pace_read(&options, receive);
    } else {
        demand(zmq_connect(pair, endpoint) == 0, "zmq_connect");
        pace_send(&options, post);
    }
    zmq_close(pair);
    zmq_ctx_term(context);
    return 0;
}
