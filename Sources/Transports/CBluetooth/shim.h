#pragma once
// Only constants and the layouts of addresses are used; no function of the library is called.
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/l2cap.h>
#include <bluetooth/rfcomm.h>

// The headers have these as macros, which Swift cannot read.

static inline int bluetooth_get_device_info(int descriptor, struct hci_dev_info *info) {
    return ioctl(descriptor, HCIGETDEVINFO, info);
}

static inline int bluetooth_send_room(int descriptor, int *room) { return ioctl(descriptor, TIOCOUTQ, room); }
