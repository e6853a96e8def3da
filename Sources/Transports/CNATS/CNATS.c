#include "CNATS.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void *handle;
static char problem[256];
static CNATSFunctions functions;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fail(const char *words) {
    snprintf(problem, sizeof problem, "%s", words ? words : "unknown");
    handle = NULL;
}

static void find(const char *symbol, void *slot) {
    if (!handle) return;
    void *address = dlsym(handle, symbol);
    // Copies a data pointer over a function pointer, which is how POSIX wants dlsym to be used.
    if (address) memcpy(slot, &address, sizeof address);
    else fail(dlerror());
}

#define FIND(member) find("nats" #member, &functions.member)
#define FIND_SHARED(member) find("nats_" #member, &functions.member)

/// Starts the library's threads, which inherit the signal mask of the thread that starts them.
static void open_library(void) {
    __typeof__(&nats_Open) open = NULL;
    find("nats_Open", &open);
    if (!open) return;
    sigset_t all, before;
    struct sigaction pipe;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    sigaction(SIGPIPE, NULL, &pipe);
    natsStatus status = open(-1);
    // The library ignores SIGPIPE for the whole process. It does not need to: each of its threads blocks the signal.
    sigaction(SIGPIPE, &pipe, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != NATS_OK) fail(functions.Status_GetText(status));
}

static void load(void) {
    // Those of Debian 12 and 13. All that is used here is the same in both.
    static const char *const names[] = {"libnats.so.3.4", "libnats.so.3.10"};
    for (size_t i = 0; !handle && i < sizeof names / sizeof *names; i++) {
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!handle && i == 0) fail(dlerror());
    }
    if (!handle) return;
    FIND_SHARED(GetVersion);
    FIND_SHARED(GetLastError);
    FIND_SHARED(ReleaseThreadMemory);
    FIND_SHARED(Sign);
    FIND(Status_GetText);
    FIND(Options_Create);
    FIND(Options_Destroy);
    FIND(Options_SetURL);
    FIND(Options_SetName);
    FIND(Options_SetTimeout);
    FIND(Options_SetSecure);
    FIND(Options_LoadCATrustedCertificates);
    FIND(Options_SetExpectedHostname);
    FIND(Options_SetUserInfo);
    FIND(Options_SetToken);
    FIND(Options_SetUserCredentialsCallbacks);
    FIND(Options_SetNKey);
    FIND(Options_SetAllowReconnect);
    FIND(Options_SetNoEcho);
    FIND(Options_SetPingInterval);
    FIND(Options_SetIOBufSize);
    FIND(Options_SetSendAsap);
    FIND(Options_UseGlobalMessageDelivery);
    FIND(Options_SetErrorHandler);
    FIND(Options_SetLameDuckModeCB);
    FIND(Options_SetEventLoop);
    FIND(Connection_Connect);
    FIND(Connection_Close);
    FIND(Connection_Destroy);
    FIND(Connection_IsClosed);
    FIND(Connection_ProcessReadEvent);
    FIND(Connection_ProcessWriteEvent);
    FIND(Connection_Buffered);
    FIND(Connection_FlushTimeout);
    FIND(Connection_GetMaxPayload);
    FIND(Connection_GetLastError);
    FIND(Connection_GetDiscoveredServers);
    FIND(Connection_Publish);
    FIND(Connection_PublishRequest);
    FIND(Connection_Subscribe);
    FIND(Connection_SubscribeSync);
    FIND(Subscription_SetPendingLimits);
    FIND(Subscription_GetPending);
    FIND(Subscription_NextMsg);
    FIND(Subscription_SetOnCompleteCB);
    FIND(Subscription_Unsubscribe);
    FIND(Subscription_Destroy);
    FIND(Msg_GetSubject);
    FIND(Msg_GetReply);
    FIND(Msg_GetData);
    FIND(Msg_GetDataLength);
    FIND(Msg_IsNoResponders);
    FIND(Msg_Destroy);
    open_library();
}

const CNATSFunctions *CNATS(void) {
    pthread_once(&once, load);
    return handle ? &functions : NULL;
}

const char *CNATSProblem(void) {
    return CNATS() ? NULL : problem;
}
