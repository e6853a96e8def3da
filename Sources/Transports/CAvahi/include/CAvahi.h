// Avahi's two libraries, loaded when they are first needed.
//
// libavahi-client (asks avahi-daemon over D-Bus) and libavahi-core (a complete mDNS stack in this process) both export
// avahi_entry_group_free, and mean different functions. If both are linked into one program, one of them calls the
// other's function, which stops the process. So each library is opened separately, with its symbols kept local, and its
// functions are called through a table. A program also starts without the libraries, and can say which package to
// install.
#pragma once

#include <avahi-client/client.h>
#include <avahi-client/lookup.h>
#include <avahi-client/publish.h>
#include <avahi-common/address.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <avahi-common/strlst.h>
#include <avahi-common/watch.h>
#include <avahi-core/core.h>
#include <avahi-core/log.h>
#include <avahi-core/lookup.h>
#include <avahi-core/publish.h>
#include <avahi-core/rr.h>

/// The functions of libavahi-client that are used.
typedef struct {
    __typeof__(&avahi_client_new) client_new;
    __typeof__(&avahi_client_free) client_free;
    __typeof__(&avahi_client_errno) client_errno;
    __typeof__(&avahi_client_get_host_name_fqdn) client_get_host_name_fqdn;
    __typeof__(&avahi_client_get_version_string) client_get_version_string;
    __typeof__(&avahi_record_browser_new) record_browser_new;
    __typeof__(&avahi_record_browser_free) record_browser_free;
    __typeof__(&avahi_entry_group_new) entry_group_new;
    __typeof__(&avahi_entry_group_free) entry_group_free;
    __typeof__(&avahi_entry_group_add_record) entry_group_add_record;
    __typeof__(&avahi_entry_group_commit) entry_group_commit;
    __typeof__(&avahi_strerror) strerror;
} CAvahiClientFunctions;

/// The functions of libavahi-core that are used.
typedef struct {
    __typeof__(&avahi_server_new) server_new;
    __typeof__(&avahi_server_free) server_free;
    __typeof__(&avahi_server_errno) server_errno;
    __typeof__(&avahi_server_config_init) server_config_init;
    __typeof__(&avahi_server_config_free) server_config_free;
    __typeof__(&avahi_server_add) server_add;
    __typeof__(&avahi_server_add_address) server_add_address;
    __typeof__(&avahi_s_record_browser_new) s_record_browser_new;
    __typeof__(&avahi_s_record_browser_free) s_record_browser_free;
    __typeof__(&avahi_s_entry_group_new) s_entry_group_new;
    __typeof__(&avahi_s_entry_group_free) s_entry_group_free;
    __typeof__(&avahi_s_entry_group_commit) s_entry_group_commit;
    __typeof__(&avahi_key_new) key_new;
    __typeof__(&avahi_key_unref) key_unref;
    __typeof__(&avahi_record_new_full) record_new_full;
    __typeof__(&avahi_record_unref) record_unref;
    __typeof__(&avahi_rdata_parse) rdata_parse;
    __typeof__(&avahi_rdata_serialize) rdata_serialize;
    __typeof__(&avahi_string_list_add) string_list_add;
    __typeof__(&avahi_strdup) strdup;
    __typeof__(&avahi_strerror) strerror;
} CAvahiCoreFunctions;

/// The functions of libavahi-client.so.3, or NULL if it cannot be loaded. Callable from any thread; never unloaded.
const CAvahiClientFunctions *CAvahiClient(void);

/// Why CAvahiClient returns NULL, as the loader reported it; NULL if it does not.
const char *CAvahiClientProblem(void);

/// The functions of libavahi-core.so.7, or NULL if it cannot be loaded. Callable from any thread; never unloaded. From
/// then on, the library's output to standard error is dropped.
const CAvahiCoreFunctions *CAvahiCore(void);

/// Why CAvahiCore returns NULL, as the loader reported it; NULL if it does not.
const char *CAvahiCoreProblem(void);
