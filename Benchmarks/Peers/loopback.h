// TCP sockets on loopback, for programs that use them.

#pragma once

#include "blocking.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static struct sockaddr_in loopback(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int listening(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    demand(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    demand(listen(listener, 4096) == 0, "listen");
    demand(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    benchmark_report_port_number(ntohs(address.sin_port));
    return listener;
}

static int without_delay(int descriptor) {
    int yes = 1;
    demand(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
    return descriptor;
}

static int accept_descriptor(int listener) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    demand(descriptor >= 0, "accept");
    return without_delay(descriptor);
}

static int connect_descriptor(void) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(atoi(options.port));
    demand(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    return without_delay(descriptor);
}
