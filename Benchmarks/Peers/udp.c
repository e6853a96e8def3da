// Packets: nothing between the messages and UDP sockets, or only AES-128-GCM with the number of the packet in the nonce, as
// Nigh protects its packets. What is lost stays lost, so it does round trips only.

#include "benchmark.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { NUMBER = 8, TAG = 16, LONGEST = 1400 };

static struct benchmark_options options;
static bool is_sealed;
static EVP_CIPHER_CTX *sealing, *opening;
static uint64_t next_number;

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, strerror(errno));
}

/// Sets the nonce of a packet, which is its number.
static bool set_nonce(EVP_CIPHER_CTX *context, const uint8_t *number, bool seals) {
    uint8_t nonce[12] = {0};
    memcpy(nonce + 4, number, NUMBER);
    return (seals ? EVP_EncryptInit_ex : EVP_DecryptInit_ex)(context, NULL, NULL, NULL, nonce) == 1;
}

/// Sends a message to the other end of a connected socket.
static void post(int descriptor, const uint8_t *bytes, size_t count) {
    uint8_t packet[NUMBER + LONGEST + TAG];
    size_t length = count;
    int written;
    if (is_sealed) {
        memcpy(packet, &next_number, NUMBER);
        next_number += 1;
        bool done = set_nonce(sealing, packet, true) &&
            EVP_EncryptUpdate(sealing, NULL, &written, packet, NUMBER) == 1 &&
            EVP_EncryptUpdate(sealing, packet + NUMBER, &written, bytes, (int)count) == 1 &&
            EVP_EncryptFinal_ex(sealing, packet + NUMBER + count, &written) == 1 &&
            EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, TAG, packet + NUMBER + count) == 1;
        demand(done, "sealing a packet");
        bytes = packet;
        length = NUMBER + count + TAG;
    }
    demand(send(descriptor, bytes, length, 0) == (ssize_t)length, "send");
}

/// Reads one packet into `room`. Returns where its message begins.
static uint8_t *message(int descriptor, uint8_t *room, size_t count) {
    size_t length = is_sealed ? NUMBER + count + TAG : count;
    demand(recv(descriptor, room, NUMBER + LONGEST + TAG, 0) == (ssize_t)length, "recv");
    if (!is_sealed) return room;
    int written;
    uint8_t *content = room + NUMBER;
    bool done = set_nonce(opening, room, false) && EVP_DecryptUpdate(opening, NULL, &written, room, NUMBER) == 1 &&
        EVP_DecryptUpdate(opening, content, &written, content, (int)count) == 1 &&
        EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, TAG, content + count) == 1 &&
        EVP_DecryptFinal_ex(opening, content + count, &written) == 1;
    demand(done, "opening a packet");
    return content;
}

static int new_socket(struct sockaddr_in *address) {
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(options.serves ? 0 : (uint16_t)atoi(options.port)),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return descriptor;
}

/// Sends back each packet to the one that sent the first.
static void serve(void) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int descriptor = new_socket(&address);
    demand(bind(descriptor, (struct sockaddr *)&address, length) == 0, "bind");
    demand(getsockname(descriptor, (struct sockaddr *)&address, &length) == 0, "getsockname");
    benchmark_report_port_number(ntohs(address.sin_port));
    uint8_t room[NUMBER + LONGEST + TAG];
    ssize_t count = recvfrom(descriptor, room, sizeof room, MSG_PEEK, (struct sockaddr *)&address, &length);
    demand(count > 0 && connect(descriptor, (struct sockaddr *)&address, length) == 0, "connect");
    while (true) post(descriptor, message(descriptor, room, options.size), options.size);
}

static void ask(void) {
    struct sockaddr_in address;
    int descriptor = new_socket(&address);
    demand(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    struct benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    uint8_t room[NUMBER + LONGEST + TAG];
    do post(descriptor, benchmark_trips_next(&trips), options.size);
    while (benchmark_trips_returned(&trips, message(descriptor, room, options.size), options.size));
    benchmark_trips_report(&trips);
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    if (options.work != BENCHMARK_ROUND_TRIP || options.size > LONGEST) benchmark_unsupported("it has packets only");
    is_sealed = strcmp(options.way, "sealed") == 0;
    static const uint8_t key[16] = "a key of no use";
    sealing = EVP_CIPHER_CTX_new();
    opening = EVP_CIPHER_CTX_new();
    demand(
        EVP_EncryptInit_ex(sealing, EVP_aes_128_gcm(), NULL, key, NULL) == 1 &&
            EVP_DecryptInit_ex(opening, EVP_aes_128_gcm(), NULL, key, NULL) == 1,
        "AES-128-GCM");
    if (options.serves) serve();
    else ask();
    return 0;
}
