#pragma once
#include <uv.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
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

/* Sends a packet from one address of the machine, through a socket that is bound to all of them. Both addresses have the family of
   the socket. Returns what `sendmsg` returns. */
static inline ssize_t nigh_send_from(int socket, const void *packet, size_t count, const struct sockaddr *from,
                                     const struct sockaddr *to, socklen_t size) {
    // The C library declares this structure only with its GNU extensions.
    struct { struct in6_addr address; unsigned int interface; } six = {0};
    struct in_pktinfo four = {0};
    union { struct cmsghdr header; char room[CMSG_SPACE(sizeof six)]; } control = {0};
    struct iovec part = { .iov_base = (void *)packet, .iov_len = count };
    struct msghdr message = { .msg_name = (void *)to, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1,
                              .msg_control = &control };
    struct cmsghdr *header = &control.header;
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)from;
        six.address = address->sin6_addr;
        six.interface = address->sin6_scope_id;
        *header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof six), .cmsg_level = IPPROTO_IPV6,
                                    .cmsg_type = IPV6_PKTINFO };
        memcpy(CMSG_DATA(header), &six, sizeof six);
        message.msg_controllen = CMSG_SPACE(sizeof six);
    } else {
        four.ipi_spec_dst = ((const struct sockaddr_in *)from)->sin_addr;
        *header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof four), .cmsg_level = IPPROTO_IP,
                                    .cmsg_type = IP_PKTINFO };
        memcpy(CMSG_DATA(header), &four, sizeof four);
        message.msg_controllen = CMSG_SPACE(sizeof four);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}
