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

enum { NIGH_MOST_PACKETS = 16 };

/* Packets that were received with one call, one behind the other in memory, each in a place of the same length. */
struct nigh_packets {
    struct sockaddr_storage sources[NIGH_MOST_PACKETS];
    size_t counts[NIGH_MOST_PACKETS];
};

/* As <sys/socket.h> declares it, with the GNU extensions. */
struct nigh_mmsghdr { struct msghdr message; unsigned int count; };
extern int recvmmsg(int socket, struct nigh_mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout);

/* Receives as many packets as there are and fit into `count` places of `length` bytes each, and does not wait. Returns how many, or
   -1 with `errno`. */
static inline int nigh_receive_packets(int socket, void *room, size_t length, unsigned int count,
                                       struct nigh_packets *packets) {
    struct nigh_mmsghdr messages[NIGH_MOST_PACKETS];
    struct iovec places[NIGH_MOST_PACKETS];
    if (count > NIGH_MOST_PACKETS) count = NIGH_MOST_PACKETS;
    for (unsigned int index = 0; index < count; index++) {
        places[index] = (struct iovec){ .iov_base = (char *)room + index * length, .iov_len = length };
        messages[index].message = (struct msghdr){ .msg_name = &packets->sources[index],
                                                   .msg_namelen = sizeof packets->sources[index],
                                                   .msg_iov = &places[index], .msg_iovlen = 1 };
    }
    int received = recvmmsg(socket, messages, count, MSG_DONTWAIT, 0);
    for (int index = 0; index < received; index++) packets->counts[index] = messages[index].count;
    return received;
}

/* One of the received packets: its length, and where it came from. */
static inline size_t nigh_packet_count(const struct nigh_packets *packets, int index) { return packets->counts[index]; }
static inline const struct sockaddr *nigh_packet_source(const struct nigh_packets *packets, int index) {
    return (const struct sockaddr *)&packets->sources[index];
}

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
