// The description of a plugin, which a program checks before either calls the other's Swift code.
//
// This is C because the layout of C structs does not change. The two may have been built against different versions of
// Nigh, and the check must work in any case. A plugin exports one function, `nigh_transport_plugin`, which returns a
// `struct nigh_plugin`.

#ifndef NIGH_PLUGIN_H
#define NIGH_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "nigh_interface.h"

// Changes when `struct nigh_plugin` changes. A program refuses a plugin with another number.
enum { NIGH_PLUGIN_INTERFACE = 1 };

// The capabilities and costs of the transport; see TransportCapabilities.
struct nigh_plugin_capabilities {
    bool datagrams;
    int64_t typical_mtu;
    double typical_latency_ms;
    double expected_connect_ms;
    int64_t priority;
};

// The description of a plugin. It is constant and never freed. Its strings are UTF-8 and end with a zero.
struct nigh_plugin {
    // The NIGH_PLUGIN_INTERFACE with which the plugin was compiled. These stay the first four bytes in every version.
    uint32_t interface;
    // The compiler that compiled it.
    const char *toolchain;
    // The Nigh it was compiled against.
    const char *nigh_version;
    const char *nigh_fingerprint;
    // The transport's scheme and version.
    const char *scheme;
    const char *version;
    struct nigh_plugin_capabilities capabilities;
    // The mark of the Nigh that it runs with. It differs from the program's if the plugin contains its own copy of
    // Nigh.
    const void *shared_mark;
    // Returns the registry entry, retained. Called only after all of the above was found right.
    void *(*make_entry)(void);
};

// The compiler that compiles the calling code.
static inline const char *nigh_plugin_toolchain(void) { return __VERSION__; }

// The version of the Nigh whose headers the calling code was compiled with.
static inline const char *nigh_plugin_nigh_version(void) { return NIGH_VERSION; }

#endif
