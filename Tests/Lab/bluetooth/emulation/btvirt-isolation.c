/* Preloaded into btvirt when `air` runs it on this machine. btvirt listens at fixed paths below /tmp; they become names in
   its working folder, so that several airs do not collide. It also insists on the kernel's cryptography (AF_ALG), which it
   needs for Bluetooth Low Energy only and which many kernels lack; it gets a socket that takes its calls and does nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *in_own_folder(const char *path)
{
    return strncmp(path, "/tmp/bt-", 8) ? path : path + 5;
}

int socket(int domain, int type, int protocol)
{
    int (*real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    return domain == AF_ALG ? real(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : real(domain, type, protocol);
}

int bind(int descriptor, const struct sockaddr *address, socklen_t size)
{
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
    if (address->sa_family == AF_ALG)
        return 0;
    if (address->sa_family != AF_UNIX)
        return real(descriptor, address, size);
    struct sockaddr_un own = { 0 };
    memcpy(&own, address, size);
    const char *name = in_own_folder(own.sun_path);
    memmove(own.sun_path, name, strlen(name) + 1);
    return real(descriptor, (const struct sockaddr *)&own, sizeof own);
}

int unlink(const char *path)
{
    int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
    return real(in_own_folder(path));
}
