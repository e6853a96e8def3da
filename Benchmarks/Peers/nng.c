// NNG, in plaintext or with TLS: PAIR for round trip and stream, REQ and REP for many connections. Broadcast uses PUB
// and SUB, which drop what does not fit in a queue. So the subscribers report from time to time what all of them have,
// and the publisher does not overrun the queues.

#include "identity.h"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/tls/tls.h>
#include <nng/transport/tls/tls.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static struct benchmark_options options;
static bool is_encrypted;

static void demand(int status, const char *what) {
    if (status != 0) benchmark_fail(what, nng_strerror(status));
}

/// Makes a key on P-256: the number 1, encoded as in RFC 5915. libcrypto computes the public half.
static EVP_PKEY *elliptic_key(void) {
    static const uint8_t written[51] = {
        0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20, [38] = 1, 0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
        0x01, 0x07};
    const uint8_t *from = written;
    return d2i_PrivateKey(EVP_PKEY_EC, NULL, &from, sizeof written);
}

/// Returns how many messages may wait in a queue. The queues of all peers together are limited as well. By measurement
/// more is not faster, and it takes long to empty the queues.
static int window(void) {
    enum { BYTES_WAITING = 4 << 20, MOST_WAITING = 4096, ALL_WAITING = 32768 };
    int messages = (int)(BYTES_WAITING / options.size), most = ALL_WAITING / options.peers;
    if (most > MOST_WAITING) most = MOST_WAITING;
    return messages > most ? most : messages < 8 ? 8 : messages;
}

static nng_socket opened(int (*open)(nng_socket *)) {
    nng_socket socket;
    demand(open(&socket), "nng_open");
    demand(nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0), "NNG_OPT_RECVMAXSZ");
    // A queue takes memory from the start, so idle peers get the default. Not every protocol has both queues.
    if (options.work == BENCHMARK_IDLE) return socket;
    (void)nng_socket_set_int(socket, NNG_OPT_SENDBUF, window());
    (void)nng_socket_set_int(socket, NNG_OPT_RECVBUF, window());
    return socket;
}

/// Makes the TLS configuration of one side. NNG uses Mbed TLS 2, which has neither TLS 1.3 nor Ed25519. So both sides
/// use TLS 1.2, and prove a key on P-256.
static nng_tls_config *rules(nng_tls_mode mode) {
    static char key[1024], certificate[2048];
    if (*key == 0) {
        BIO *key_text = BIO_new(BIO_s_mem()), *certificate_text = BIO_new(BIO_s_mem());
        struct identity own = identity_of(elliptic_key(), EVP_sha256());
        PEM_write_bio_PrivateKey(key_text, own.key, NULL, NULL, 0, NULL, NULL);
        PEM_write_bio_X509(certificate_text, own.certificate);
        BIO_read(key_text, key, sizeof key - 1);
        BIO_read(certificate_text, certificate, sizeof certificate - 1);
    }
    nng_tls_config *rules;
    demand(nng_tls_register(), "nng_tls_register");
    demand(nng_tls_config_alloc(&rules, mode), "nng_tls_config_alloc");
    demand(nng_tls_config_auth_mode(rules, NNG_TLS_AUTH_MODE_REQUIRED), "nng_tls_config_auth_mode");
    demand(nng_tls_config_ca_chain(rules, certificate, NULL), "nng_tls_config_ca_chain");
    demand(nng_tls_config_own_cert(rules, certificate, key, NULL), "nng_tls_config_own_cert");
    if (mode == NNG_TLS_MODE_CLIENT)
        demand(nng_tls_config_server_name(rules, identity_name), "nng_tls_config_server_name");
    return rules;
}

static int listening(nng_socket socket) {
    nng_listener listener;
    int port;
    const char *address = is_encrypted ? "tls+tcp://127.0.0.1:0" : "tcp://127.0.0.1:0";
    demand(nng_listener_create(&listener, socket, address), "nng_listener_create");
    if (is_encrypted)
        demand(
            nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, rules(NNG_TLS_MODE_SERVER)), "NNG_OPT_TLS_CONFIG");
    demand(nng_listener_start(listener, 0), "nng_listener_start");
    demand(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), "NNG_OPT_TCP_BOUND_PORT");
    return port;
}

static void connect_to(nng_socket socket, const char *port) {
    static nng_tls_config *dialling;
    char address[64];
    nng_dialer dialer;
    snprintf(address, sizeof address, "%s://127.0.0.1:%s", is_encrypted ? "tls+tcp" : "tcp", port);
    demand(nng_dialer_create(&dialer, socket, address), "nng_dialer_create");
    if (is_encrypted && dialling == NULL) dialling = rules(NNG_TLS_MODE_CLIENT);
    if (is_encrypted) demand(nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, dialling), "NNG_OPT_TLS_CONFIG");
    demand(nng_dialer_start(dialer, 0), "nng_dialer_start");
}

static void post(nng_socket socket, const uint8_t *bytes, size_t length) {
    nng_msg *message;
    demand(nng_msg_alloc(&message, length), "nng_msg_alloc");
    memcpy(nng_msg_body(message), bytes, length);
    demand(nng_sendmsg(socket, message, 0), "nng_sendmsg");
}

static nng_msg *received(nng_socket socket) {
    nng_msg *message;
    demand(nng_recvmsg(socket, &message, 0), "nng_recvmsg");
    return message;
}

static void wait_for_message(nng_socket socket) { nng_msg_free(received(socket)); }

static void echo(nng_socket socket, int limit) {
    for (int done = 0; limit == 0 || done < limit; done++)
        demand(nng_sendmsg(socket, received(socket), 0), "nng_sendmsg");
}

// MARK: Round trip and stream

static void ask(nng_socket socket) {
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    for (bool goes_on = true; goes_on;) {
        post(socket, benchmark_trips_next(&trips), options.size);
        nng_msg *message = received(socket);
        goes_on = benchmark_trips_returned(&trips, nng_msg_body(message), nng_msg_len(message));
        nng_msg_free(message);
    }
    benchmark_trips_report(&trips);
}

static void send_stream(nng_socket socket) {
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    const uint8_t *payload;
    while ((payload = benchmark_supply_next(&supply)) != NULL) post(socket, payload, options.size);
    wait_for_message(socket);
    benchmark_supply_report(&supply);
}

static void receive_stream(nng_socket socket) {
    struct benchmark_tally tally = {.peers = 1};
    struct benchmark_receipt receipt = {.size = options.size};
    for (bool goes_on = true; goes_on;) {
        nng_msg *message = received(socket);
        goes_on = !benchmark_receive(&receipt, &tally, nng_msg_body(message), nng_msg_len(message));
        nng_msg_free(message);
    }
    benchmark_tally_report(&tally);
    post(socket, (const uint8_t *)"", 1);
}

// MARK: Broadcast

static sem_t joined;

static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *context) {
    (void)pipe;
    (void)event;
    (void)context;
    sem_post(&joined);
}

static void publish(void) {
    nng_socket publisher = opened(nng_pub0_open), words = opened(nng_pull0_open);
    char ports[32];
    snprintf(ports, sizeof ports, "%d,%d", listening(publisher), listening(words));
    demand(nng_pipe_notify(publisher, NNG_PIPE_EV_ADD_POST, on_pipe, NULL), "nng_pipe_notify");
    sem_init(&joined, 0, 0);
    benchmark_report_port(ports);
    for (int index = 0; index < options.peers; index++) sem_wait(&joined);
    struct benchmark_supply supply;
    benchmark_supply_begin(&supply, &options);
    const uint8_t *payload;
    uint64_t sent = 0, arrived = 0;
    while ((payload = benchmark_supply_next(&supply)) != NULL) {
        while (sent - arrived >= (uint64_t)window()) {
            wait_for_message(words);
            arrived += (uint64_t)window() / 2;
        }
        post(publisher, payload, options.size);
        sent += 1;
    }
    for (nng_msg *word = NULL; word == NULL || nng_msg_len(word) == 1;) {
        nng_msg_free(word);
        word = received(words);
    }
    benchmark_supply_report(&supply);
}

struct subscriber {
    nng_socket socket;
    nng_aio *aio;
    struct benchmark_receipt receipt;
    uint64_t count;
};

/// How many subscribers have reached each of the last four halves of a window. No two can be further apart.
static int reached[4];
static struct benchmark_tally tally;
static nng_socket words;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end = PTHREAD_COND_INITIALIZER;
static bool has_ended;

static void on_message(void *context) {
    struct subscriber *subscriber = context;
    demand(nng_aio_result(subscriber->aio), "nng_recv_aio");
    nng_msg *message = nng_aio_get_msg(subscriber->aio);
    bool all_have = false;
    pthread_mutex_lock(&lock);
    if (benchmark_receive(&subscriber->receipt, &tally, nng_msg_body(message), nng_msg_len(message))) {
        has_ended = true;
        pthread_cond_signal(&end);
    }
    uint64_t half = (uint64_t)window() / 2;
    if (++subscriber->count % half == 0) {
        int *those = &reached[subscriber->count / half % 4];
        all_have = ++*those == options.peers;
        if (all_have) *those = 0;
    }
    pthread_mutex_unlock(&lock);
    nng_msg_free(message);
    if (all_have) post(words, (const uint8_t *)"", 1);
    if (!subscriber->receipt.has_ended) nng_recv_aio(subscriber->socket, subscriber->aio);
}

static void subscribe(void) {
    char *rest, *port = strtok_r((char *)options.port, ",", &rest);
    words = opened(nng_push0_open);
    tally.peers = options.peers;
    connect_to(words, strtok_r(NULL, ",", &rest));
    struct subscriber *subscribers = calloc((size_t)options.peers, sizeof *subscribers);
    for (int index = 0; index < options.peers; index++) {
        struct subscriber *subscriber = &subscribers[index];
        subscriber->receipt.size = options.size;
        subscriber->socket = opened(nng_sub0_open);
        demand(nng_socket_set(subscriber->socket, NNG_OPT_SUB_SUBSCRIBE, "", 0), "NNG_OPT_SUB_SUBSCRIBE");
        connect_to(subscriber->socket, port);
        demand(nng_aio_alloc(&subscriber->aio, on_message, subscriber), "nng_aio_alloc");
        nng_recv_aio(subscriber->socket, subscriber->aio);
    }
    pthread_mutex_lock(&lock);
    while (!has_ended) pthread_cond_wait(&end, &lock);
    pthread_mutex_unlock(&lock);
    benchmark_tally_report(&tally);
    post(words, (const uint8_t *)"end", 4);
    benchmark_wait_for_other_side();
}

// MARK: Connections

static void greet(nng_socket socket, const uint8_t *payload) {
    connect_to(socket, options.port);
    post(socket, payload, options.size);
    wait_for_message(socket);
}

static intptr_t connect_once(const uint8_t *payload) {
    nng_socket socket = opened(nng_req0_open);
    greet(socket, payload);
    return (intptr_t)socket.id;
}

static void leave(intptr_t socket) { nng_close((nng_socket){.id = (uint32_t)socket}); }

static void keep_idle(void) {
    uint64_t before = benchmark_resident();
    const uint8_t *payload = benchmark_payload(options.size, 0);
    if (options.serves) {
        nng_socket socket = opened(nng_rep0_open);
        benchmark_report_port_number(listening(socket));
        echo(socket, options.peers);
    } else {
        for (int index = 0; index < options.peers; index++) greet(opened(nng_req0_open), payload);
    }
    benchmark_report_resident(before, options.peers);
}

static void serve(void) {
    if (options.work == BENCHMARK_IDLE) return keep_idle();
    if (options.work == BENCHMARK_BROADCAST) return publish();
    nng_socket socket = opened(options.work == BENCHMARK_CONNECT ? nng_rep0_open : nng_pair0_open);
    benchmark_report_port_number(listening(socket));
    if (options.work == BENCHMARK_STREAM) return receive_stream(socket);
    echo(socket, 0);
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    is_encrypted = strcmp(options.way, "tls") == 0;
    if (options.serves) {
        serve();
        benchmark_wait_for_other_side();
        return 0;
    }
    nng_socket socket;
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP:
    case BENCHMARK_STREAM:
        socket = opened(nng_pair0_open);
        connect_to(socket, options.port);
        options.work == BENCHMARK_STREAM ? send_stream(socket) : ask(socket);
        break;
    case BENCHMARK_BROADCAST: subscribe(); break;
    case BENCHMARK_CONNECT: benchmark_connect_often(&options, connect_once, leave); break;
    case BENCHMARK_IDLE: keep_idle(); break;
    case BENCHMARK_FOUND: benchmark_unsupported("it has no discovery");
    case BENCHMARK_CALLS_AT_ONCE: benchmark_unsupported("it has no calls");
    }
    return 0;
}
