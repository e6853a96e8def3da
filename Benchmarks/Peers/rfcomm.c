// The baseline for sessions over Bluetooth: nothing between the messages and RFCOMM's sockets. The server is on hci1,
// the client on hci0.

#include "framing.h"

enum {
    LARGEST_COPIED = SMALL_MESSAGE,
    /// The most bytes in one write: a write of some 23,000 bytes or more never returns from the kernel.
    LARGEST_WRITE = 8 << 10,
};

#include "blocking.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/rfcomm.h>
#include <poll.h>
#include <sys/ioctl.h>

/// Opens a socket on that adapter. The kernel chooses the channel of a socket that listens.
static int socket_on(int adapter) {
    int controller = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC, BTPROTO_HCI);
    struct hci_dev_info information = {.dev_id = (uint16_t)adapter};
    demand(ioctl(controller, HCIGETDEVINFO, &information) == 0, "an adapter");
    close(controller);
    int descriptor = socket(AF_BLUETOOTH, SOCK_STREAM | SOCK_CLOEXEC, BTPROTO_RFCOMM);
    struct sockaddr_rc address = {.rc_family = AF_BLUETOOTH, .rc_bdaddr = information.bdaddr};
    demand(bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    return descriptor;
}

static int listening(void) {
    int listener = socket_on(1);
    demand(listen(listener, 8) == 0, "listen");
    struct sockaddr_rc address;
    socklen_t length = sizeof address;
    demand(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    const uint8_t *bytes = address.rc_bdaddr.b;
    char text[32];
    snprintf(
        text, sizeof text, "%02X:%02X:%02X:%02X:%02X:%02X/%d", bytes[5], bytes[4], bytes[3], bytes[2], bytes[1],
        bytes[0], address.rc_channel);
    benchmark_report_port(text);
    return listener;
}

static int accept_descriptor(int listener) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    demand(descriptor >= 0, "accept");
    return descriptor;
}

static int connect_descriptor(void) {
    struct sockaddr_rc address = {.rc_family = AF_BLUETOOTH};
    uint8_t *bytes = address.rc_bdaddr.b;
    int fields = sscanf(
        options.port, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx/%hhu", &bytes[5], &bytes[4], &bytes[3], &bytes[2], &bytes[1],
        &bytes[0], &address.rc_channel);
    if (fields != 7) benchmark_fail("an address", options.port);
    // For a while after a connection was closed, no other can be made to its channel.
    for (int tries = 0;; tries++) {
        int descriptor = socket_on(0);
        if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
        demand(tries < 1000 && (errno == EBUSY || errno == ECONNRESET || errno == ECONNREFUSED), "connect");
        close(descriptor);
        usleep(1000);
    }
}

static void connection_begin(struct connection *connection, bool is_server) {
    (void)connection;
    (void)is_server;
}

static void connection_end(struct connection *connection) { close(connection->descriptor); }

static void write_all(struct connection *connection, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        size_t piece = count < LARGEST_WRITE ? count : LARGEST_WRITE;
        ssize_t sent = send(connection->descriptor, bytes, piece, MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = connection->descriptor, .events = POLLOUT};
            demand(poll(&writable, 1, -1) == 1, "poll");
            continue;
        }
        demand(sent > 0, "send");
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void write_frames(struct connection *connection, const struct iovec *frames, int count) {
    for (int index = 0; index < count; index++) write_all(connection, frames[index].iov_base, frames[index].iov_len);
}

static size_t read_some(struct connection *connection, uint8_t *room, size_t size) {
    ssize_t got = read(connection->descriptor, room, size);
    // A close by the other side arrives as an error.
    demand(got >= 0 || errno == ECONNRESET, "read");
    return got < 0 ? 0 : (size_t)got;
}

static bool has_more(const struct connection *connection) {
    (void)connection;
    return false;
}

int main(int argument_count, char **arguments) { return work(argument_count, arguments); }
