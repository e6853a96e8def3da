// The official client library of NATS, loaded when it is first needed.
//
// So a program starts without the library, and can say which package to install. The functions are called through a
// table, like those of Avahi.
#pragma once

#include <nats/nats.h>
// Wakes the thread that polls. Swift's Glibc does not have it.
#include <sys/eventfd.h>

/// The functions of libnats that are used.
typedef struct {
    __typeof__(&nats_GetVersion) GetVersion;
    __typeof__(&nats_GetLastError) GetLastError;
    __typeof__(&nats_ReleaseThreadMemory) ReleaseThreadMemory;
    __typeof__(&nats_Sign) Sign;
    __typeof__(&natsStatus_GetText) Status_GetText;
    __typeof__(&natsOptions_Create) Options_Create;
    __typeof__(&natsOptions_Destroy) Options_Destroy;
    __typeof__(&natsOptions_SetURL) Options_SetURL;
    __typeof__(&natsOptions_SetName) Options_SetName;
    __typeof__(&natsOptions_SetTimeout) Options_SetTimeout;
    __typeof__(&natsOptions_SetSecure) Options_SetSecure;
    __typeof__(&natsOptions_LoadCATrustedCertificates) Options_LoadCATrustedCertificates;
    __typeof__(&natsOptions_SetExpectedHostname) Options_SetExpectedHostname;
    __typeof__(&natsOptions_SetUserInfo) Options_SetUserInfo;
    __typeof__(&natsOptions_SetToken) Options_SetToken;
    __typeof__(&natsOptions_SetUserCredentialsCallbacks) Options_SetUserCredentialsCallbacks;
    __typeof__(&natsOptions_SetNKey) Options_SetNKey;
    __typeof__(&natsOptions_SetAllowReconnect) Options_SetAllowReconnect;
    __typeof__(&natsOptions_SetNoEcho) Options_SetNoEcho;
    __typeof__(&natsOptions_SetPingInterval) Options_SetPingInterval;
    __typeof__(&natsOptions_SetIOBufSize) Options_SetIOBufSize;
    __typeof__(&natsOptions_SetSendAsap) Options_SetSendAsap;
    __typeof__(&natsOptions_UseGlobalMessageDelivery) Options_UseGlobalMessageDelivery;
    __typeof__(&natsOptions_SetErrorHandler) Options_SetErrorHandler;
    __typeof__(&natsOptions_SetLameDuckModeCB) Options_SetLameDuckModeCB;
    __typeof__(&natsOptions_SetEventLoop) Options_SetEventLoop;
    __typeof__(&natsConnection_Connect) Connection_Connect;
    __typeof__(&natsConnection_Close) Connection_Close;
    __typeof__(&natsConnection_Destroy) Connection_Destroy;
    __typeof__(&natsConnection_IsClosed) Connection_IsClosed;
    __typeof__(&natsConnection_ProcessReadEvent) Connection_ProcessReadEvent;
    __typeof__(&natsConnection_ProcessWriteEvent) Connection_ProcessWriteEvent;
    __typeof__(&natsConnection_Buffered) Connection_Buffered;
    __typeof__(&natsConnection_FlushTimeout) Connection_FlushTimeout;
    __typeof__(&natsConnection_GetMaxPayload) Connection_GetMaxPayload;
    __typeof__(&natsConnection_GetLastError) Connection_GetLastError;
    __typeof__(&natsConnection_GetDiscoveredServers) Connection_GetDiscoveredServers;
    __typeof__(&natsConnection_Publish) Connection_Publish;
    __typeof__(&natsConnection_PublishRequest) Connection_PublishRequest;
    __typeof__(&natsConnection_Subscribe) Connection_Subscribe;
    __typeof__(&natsConnection_SubscribeSync) Connection_SubscribeSync;
    __typeof__(&natsSubscription_SetPendingLimits) Subscription_SetPendingLimits;
    __typeof__(&natsSubscription_GetPending) Subscription_GetPending;
    __typeof__(&natsSubscription_NextMsg) Subscription_NextMsg;
    __typeof__(&natsSubscription_SetOnCompleteCB) Subscription_SetOnCompleteCB;
    __typeof__(&natsSubscription_Unsubscribe) Subscription_Unsubscribe;
    __typeof__(&natsSubscription_Destroy) Subscription_Destroy;
    __typeof__(&natsMsg_GetSubject) Msg_GetSubject;
    __typeof__(&natsMsg_GetReply) Msg_GetReply;
    __typeof__(&natsMsg_GetData) Msg_GetData;
    __typeof__(&natsMsg_GetDataLength) Msg_GetDataLength;
    __typeof__(&natsMsg_IsNoResponders) Msg_IsNoResponders;
    __typeof__(&natsMsg_Destroy) Msg_Destroy;
} CNATSFunctions;

/// The functions of libnats.so.3.4, or NULL if it cannot be loaded. Callable from any thread; never unloaded. The
/// library's own threads start with the first call: they block all signals, and the process's action for SIGPIPE stays
/// as it was.
const CNATSFunctions *CNATS(void);

/// Why CNATS returns NULL, as the loader or the library reported it; NULL if it does not.
const char *CNATSProblem(void);
