// What a plugin and the program that loads it say to each other before they trust each other with anything written in Swift.
//
// It is C, since what C lays out stays where it is: the two may have been built against different versions of Nigh, and finding
// that out must work in any case. A plugin exports one function, `nigh_transport_plugin`, which returns a `struct nigh_plugin`.

#ifndef NIGH_PLUGIN_H
#define NIGH_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "nigh_interface.h"

// Changes with this file's struct. A program refuses any other.
enum { NIGH_PLUGIN_INTERFACE = 1 };

// What the transport offers and costs; see TransportCapabilities.
struct nigh_plugin_capabilities {
    bool datagrams;
    int64_t typical_mtu;
    double typical_latency_ms;
    double expected_connect_ms;
    int64_t priority;
};

// What a plugin says about itself. Nobody changes or frees it; the strings end with a zero and are UTF-8.
struct nigh_plugin {
    // NIGH_PLUGIN_INTERFACE as the plugin was compiled with; in the first four bytes for ever.
    uint32_t interface;
    // What compiled it.
    const char *toolchain;
    // The Nigh it was compiled against.
    const char *nigh_version;
    const char *nigh_fingerprint;
    // What it is.
    const char *scheme;
    const char *version;
    struct nigh_plugin_capabilities capabilities;
    // The mark of the Nigh it runs with: another one than the program's where it carries a Nigh of its own.
    const void *shared_mark;
    // Gives the registry entry, retained. Called once all of the above was found right, and never else.
    void *(*make_entry)(void);
};

// The compiler that compiles whoever calls this.
static inline const char *nigh_plugin_toolchain(void) { return __VERSION__; }

// The version of the Nigh whose headers whoever calls this was compiled with.
static inline const char *nigh_plugin_nigh_version(void) { return NIGH_VERSION; }

#endif
