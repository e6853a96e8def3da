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

/* The flags of a getifaddrs entry and its two addresses behind unions and macros, as plain functions. */
static inline unsigned char nigh_is_up(const struct ifaddrs *entry) {
    return (entry->ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}
static inline unsigned char nigh_is_loopback(const struct ifaddrs *entry) {
    return (entry->ifa_flags & IFF_LOOPBACK) != 0;
}
