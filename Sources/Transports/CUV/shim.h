#pragma once
#include <uv.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/timerfd.h>

/* The flags of a getifaddrs entry, as plain functions. */
static inline unsigned char nigh_is_up(const struct ifaddrs *entry) {
    return (entry->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}
static inline unsigned char nigh_is_loopback(const struct ifaddrs *entry) {
    return (entry->ifa_flags & IFF_LOOPBACK) != 0;
}

// The C library has this function, but declares it only with its GNU extensions.
extern int accept4(int listener, struct sockaddr *address, socklen_t *size, int flags);

/* Accepts a connection that is non-blocking and closed at exec. */
static inline int nigh_accept(int listener) { return accept4(listener, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC); }
