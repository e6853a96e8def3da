#include "CAvahi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    void *handle;
    char problem[256];
} Library;

static void note_problem(Library *library) {
    const char *words = dlerror();
    snprintf(library->problem, sizeof library->problem, "%s", words ? words : "unknown");
    library->handle = NULL;
}

static void open_library(Library *library, const char *name) {
    library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) note_problem(library);
}

static void find(Library *library, const char *symbol, void *slot) {
    if (!library->handle) return;
    void *address = dlsym(library->handle, symbol);
    // Copies a data pointer over a function pointer, which is how POSIX wants dlsym to be used.
    if (address) memcpy(slot, &address, sizeof address);
    else note_problem(library);
}

#define FIND(member) find(&library, "avahi_" #member, &functions.member)

static Library client_library;
static CAvahiClientFunctions client_functions;
static pthread_once_t client_once = PTHREAD_ONCE_INIT;

static void load_client(void) {
    Library library = {0};
    CAvahiClientFunctions functions = {0};
    open_library(&library, "libavahi-client.so.3");
    FIND(client_new);
    FIND(client_free);
    FIND(client_errno);
    FIND(client_get_host_name_fqdn);
    FIND(client_get_version_string);
    FIND(record_browser_new);
    FIND(record_browser_free);
    FIND(entry_group_new);
    FIND(entry_group_free);
    FIND(entry_group_add_record);
    FIND(entry_group_commit);
    FIND(strerror);
    client_functions = functions;
    client_library = library;
}

const CAvahiClientFunctions *CAvahiClient(void) {
    pthread_once(&client_once, load_client);
    return client_library.handle ? &client_functions : NULL;
}

const char *CAvahiClientProblem(void) {
    return CAvahiClient() ? NULL : client_library.problem;
}

static Library core_library;
static CAvahiCoreFunctions core_functions;
static pthread_once_t core_once = PTHREAD_ONCE_INIT;

static void drop_log(AvahiLogLevel level, const char *text) {
    (void)level;
    (void)text;
}

static void load_core(void) {
    Library library = {0};
    CAvahiCoreFunctions functions = {0};
    __typeof__(&avahi_set_log_function) set_log_function = NULL;
    open_library(&library, "libavahi-core.so.7");
    FIND(server_new);
    FIND(server_free);
    FIND(server_errno);
    FIND(server_config_init);
    FIND(server_config_free);
    FIND(server_add);
    FIND(server_add_address);
    FIND(s_record_browser_new);
    FIND(s_record_browser_free);
    FIND(s_entry_group_new);
    FIND(s_entry_group_free);
    FIND(s_entry_group_commit);
    FIND(key_new);
    FIND(key_unref);
    FIND(record_new_full);
    FIND(record_unref);
    FIND(rdata_parse);
    FIND(rdata_serialize);
    FIND(string_list_add);
    FIND(strdup);
    FIND(strerror);
    find(&library, "avahi_set_log_function", &set_log_function);
    if (set_log_function) set_log_function(drop_log);
    core_functions = functions;
    core_library = library;
}

const CAvahiCoreFunctions *CAvahiCore(void) {
    pthread_once(&core_once, load_core);
    return core_library.handle ? &core_functions : NULL;
}

const char *CAvahiCoreProblem(void) {
    return CAvahiCore() ? NULL : core_library.problem;
}
