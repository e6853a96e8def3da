// The baseline for files: copies one file over OpenSSL's TLS 1.3 and blocking sockets. It neither hashes nor resumes,
// and does not flush the copy to a disk.
//
// `peer-file receive FILE` reports a port, `peer-file send FILE PORT` sends to it. Both end with the file.

#include "benchmark.h"
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/// The bytes of a file in one call. A longer read or write does not make it faster.
enum { PIECE = 128 << 10 };

static uint8_t piece[PIECE];

static void demand(bool is_good, const char *what) {
    if (!is_good) benchmark_fail(what, strerror(errno));
}

static struct sockaddr_in loopback(const char *port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int accepted(void) {
    struct sockaddr_in address = loopback("0");
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    demand(listen(listener, 1) == 0, "listen");
    demand(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    benchmark_report_port_number(ntohs(address.sin_port));
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    demand(descriptor >= 0, "accept");
    return descriptor;
}

static int connected(const char *port) {
    struct sockaddr_in address = loopback(port);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    return descriptor;
}

static void receive_file(SSL *ssl, int file) {
    while (true) {
        size_t held = 0, got = 0;
        // OpenSSL returns one record at a time. Several of them make one write.
        while (held < PIECE && SSL_read_ex(ssl, piece + held, PIECE - held, &got) == 1) held += got;
        for (size_t done = 0; done < held;) {
            ssize_t count = write(file, piece + done, held - done);
            demand(count > 0, "writing the file");
            done += (size_t)count;
        }
        if (held == PIECE) continue;
        demand_tls(SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN, "SSL_read");
        // The sender ends when this has arrived.
        SSL_shutdown(ssl);
        return;
    }
}

static void send_file(SSL *ssl, int file) {
    ssize_t count;
    while ((count = read(file, piece, PIECE)) > 0) {
        size_t written;
        demand_tls(SSL_write_ex(ssl, piece, (size_t)count, &written) == 1, "SSL_write");
    }
    demand(count == 0, "reading the file");
    // The first call says that the file has ended, the second waits until the receiver has written it.
    SSL_shutdown(ssl);
    demand_tls(SSL_shutdown(ssl) == 1, "the receiver's end");
}

int main(int argument_count, char **arguments) {
    bool receives = argument_count == 3 && strcmp(arguments[1], "receive") == 0;
    if (!receives && (argument_count != 4 || strcmp(arguments[1], "send") != 0))
        benchmark_fail("usage", "receive FILE, or send FILE PORT");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int file = receives ? open(arguments[2], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)
                        : open(arguments[2], O_RDONLY | O_CLOEXEC);
    demand(file >= 0, arguments[2]);
    SSL *ssl = tls_over(receives ? accepted() : connected(arguments[3]), tls_context(), receives);
    if (receives) receive_file(ssl, file);
    else send_file(ssl, file);
    return 0;
}
