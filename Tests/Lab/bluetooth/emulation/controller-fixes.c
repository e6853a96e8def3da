/* Preloaded into btvirt, which emulates several devices in one machine. It corrects what btvirt does differently from real
   controllers:

   btvirt passes on what one device sends to another under the handle that the link has at the sender. If a device has more
   than one link, the handle at the receiver differs, and the receiver's kernel drops everything. This library inserts the
   receiver's handle, as learned from the events that btvirt itself sends to the devices.

   If two devices call each other at once, btvirt makes two links, over which nothing works. Controllers make one. So the
   second call goes to a device that does not exist; the kernel that made it takes the other's call for its own.

   If a device is asked to pair and did not ask itself, btvirt reports to it that pairing is complete without having asked
   it for its capabilities. The kernel then counts one user of the link too few, and ends the link two seconds after
   something else has used it. So this event is not passed on.

   btvirt never forgets that a device has once asked for authentication. If both have, it tells the one that answers last
   that authentication is complete, not the one that has asked now, whose connection then waits until it times out. So this
   event goes to the device that has asked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { most_devices = 32, most_links = 32, head_size = 13 };
enum { packet_command = 1, packet_data = 2, packet_event = 4 };
enum { event_connected = 0x03, event_called = 0x04, event_disconnected = 0x05, event_command_complete = 0x0E };
enum { event_authenticated = 0x06, event_asked_what_it_can = 0x31, event_paired = 0x36 };
enum { command_call = 0x0405, command_authenticate = 0x0411, command_reset = 0x0C03, command_read_address = 0x1009 };
enum { handle_mask = 0x0FFF };

struct link {
    uint16_t handle;
    uint8_t peer[6];
};

struct peers {
    uint8_t addresses[most_links][6];
    time_t since[most_links];
    int count;
};

static struct device {
    int descriptor;
    uint8_t address[6];
    struct link links[most_links];
    int link_count;
    /* Peers that call it and are not connected yet; peers that it pairs with after it was asked for its capabilities; peers
       that it has asked to authenticate themselves. */
    struct peers callers, pairing, asked;
} devices[most_devices];
static int device_count;

/* btvirt reads a packet from one device and at once writes the resulting packets to others. */
static int last_read = -1;

static struct device *device_of(int descriptor) {
    for (int i = 0; i < device_count; i++)
        if (devices[i].descriptor == descriptor) return &devices[i];
    if (device_count == most_devices) return NULL;
    devices[device_count].descriptor = descriptor;
    return &devices[device_count++];
}

static uint16_t number(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }

static struct device *device_at(const uint8_t *address) {
    for (int i = 0; i < device_count; i++)
        if (memcmp(devices[i].address, address, 6) == 0) return &devices[i];
    return NULL;
}

static struct link *link_of(struct device *device, uint16_t handle) {
    for (int i = 0; i < device->link_count; i++)
        if (device->links[i].handle == handle) return &device->links[i];
    return NULL;
}

static struct link *link_to(struct device *device, const uint8_t *address) {
    for (int i = 0; i < device->link_count; i++)
        if (memcmp(device->links[i].peer, address, 6) == 0) return &device->links[i];
    return NULL;
}

static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static int remove_peer(struct peers *peers, const uint8_t *address) {
    for (int i = 0; i < peers->count; i++) {
        if (memcmp(peers->addresses[i], address, 6) != 0) continue;
        memcpy(peers->addresses[i], peers->addresses[--peers->count], 6);
        peers->since[i] = peers->since[peers->count];
        return 1;
    }
    return 0;
}

static void add_peer(struct peers *peers, const uint8_t *address) {
    remove_peer(peers, address);
    if (peers->count == most_links) return;
    peers->since[peers->count] = seconds();
    memcpy(peers->addresses[peers->count++], address, 6);
}

/* Forgets a link that has ended, and what was asked over it. */
static void forget(struct device *device, uint16_t handle) {
    struct link *link = link_of(device, handle);
    if (!link) return;
    remove_peer(&device->asked, link->peer);
    *link = device->links[--device->link_count];
}

/* Whether the peer calls now. A call that has led to no link for ten seconds was given up, which btvirt does not report. */
static int is_calling(const struct peers *callers, const uint8_t *address) {
    for (int i = 0; i < callers->count; i++)
        if (memcmp(callers->addresses[i], address, 6) == 0) return seconds() - callers->since[i] < 10;
    return 0;
}

/* Whether the device gets the event. */
static int is_told(struct device *device, const uint8_t *head) {
    if (head[1] == event_asked_what_it_can) add_peer(&device->pairing, head + 3);
    return head[1] != event_paired || remove_peer(&device->pairing, head + 4);
}

/* The link over which the device that has asked for authentication is told that it is complete, and that device. btvirt has
   said it to `device`. NULL if it may stay as it is. */
static struct link *link_of_asker(struct device *device, uint16_t handle, struct device **asker) {
    struct link *link = link_of(device, handle);
    if (!link || remove_peer(&device->asked, link->peer)) return NULL;
    *asker = device_at(link->peer);
    return *asker && remove_peer(&(*asker)->asked, device->address) ? link_to(*asker, device->address) : NULL;
}

static void note_event(struct device *device, const uint8_t *head) {
    switch (head[1]) {
    case event_called:
        add_peer(&device->callers, head + 3);
        break;
    case event_command_complete:
        if (number(head + 4) == command_read_address) memcpy(device->address, head + 7, 6);
        break;
    case event_connected:
        remove_peer(&device->callers, head + 6);
        if (head[3] != 0 || device->link_count == most_links) break;
        forget(device, number(head + 4));
        device->links[device->link_count].handle = number(head + 4);
        memcpy(device->links[device->link_count++].peer, head + 6, 6);
        break;
    case event_disconnected:
        if (head[3] == 0) forget(device, number(head + 4));
        break;
    }
}

static void correct_handle(struct device *receiver, uint8_t *first, uint8_t *second) {
    const struct device *sender = last_read < 0 ? NULL : device_of(last_read);
    const struct link *link = sender ? link_to(receiver, sender->address) : NULL;
    if (!link) return;
    uint16_t flags = (uint16_t)((*first | *second << 8) & ~handle_mask);
    uint16_t corrected = flags | link->handle;
    *first = (uint8_t)corrected;
    *second = (uint8_t)(corrected >> 8);
}

static uint8_t *byte_at(const struct iovec *pieces, int count, size_t position) {
    for (int i = 0; i < count; position -= pieces[i++].iov_len)
        if (position < pieces[i].iov_len) return (uint8_t *)pieces[i].iov_base + position;
    return NULL;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    ssize_t (*system)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    struct device *device = device_of(descriptor);
    uint8_t head[head_size] = {0};
    for (size_t i = 0; i < head_size; i++) {
        const uint8_t *byte = byte_at(pieces, count, i);
        if (byte) head[i] = *byte;
    }
    if (device && head[0] == packet_event) {
        note_event(device, head);
        if (!is_told(device, head)) {
            ssize_t size = 0;
            for (int i = 0; i < count; i++) size += (ssize_t)pieces[i].iov_len;
            return size;
        }
        struct device *asker;
        struct link *link =
            head[1] == event_authenticated ? link_of_asker(device, number(head + 4), &asker) : NULL;
        if (link) {
            uint8_t event[] = {head[0], head[1], head[2], head[3], (uint8_t)link->handle, (uint8_t)(link->handle >> 8)};
            return system(asker->descriptor, &(struct iovec){event, sizeof event}, 1);
        }
    }
    if (device && head[0] == packet_data && byte_at(pieces, count, 2))
        correct_handle(device, byte_at(pieces, count, 1), byte_at(pieces, count, 2));
    return system(descriptor, pieces, count);
}

static void note_command(struct device *device, uint8_t *bytes, size_t size) {
    uint16_t command = size < 4 ? 0 : number(bytes + 1);
    if (command == command_reset)
        device->callers.count = device->pairing.count = device->asked.count = device->link_count = 0;
    if (command == command_authenticate && size >= 6) {
        struct link *link = link_of(device, number(bytes + 4));
        if (link) add_peer(&device->asked, link->peer);
    }
    if (command != command_call || size < 10) return;
    uint8_t *callee = bytes + 4;
    if (is_calling(&device->callers, callee) || link_to(device, callee)) memset(callee, 0, 6);
}

ssize_t read(int descriptor, void *bytes, size_t size) {
    ssize_t (*system)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    ssize_t count = system(descriptor, bytes, size);
    if (count <= 0) return count;
    last_read = descriptor;
    struct device *device = device_of(descriptor);
    if (device && ((uint8_t *)bytes)[0] == packet_command) note_command(device, bytes, (size_t)count);
    return count;
}

ssize_t __read_chk(int descriptor, void *bytes, size_t size, size_t room) {
    (void)room;
    return read(descriptor, bytes, size);
}
