/// The counts of a conversation. `PeerStatistics`, which is four times as long, is made from them on request.
struct ConversationCounts {
    var messagesSent = 0
    var bytesSent = 0
    var messagesReceived = 0
    var bytesReceived = 0
    var messagesResent = 0
    var unreliableSent = 0
    var unreliableDropped = 0
    var unreliableReceived = 0
    var unreliableUnread = 0
    var streamsOpened = 0
    var streamBytesSent = 0
    var streamBytesReceived = 0
    var reconnects = 0
}

extension PeerStatistics {
    init(_ counts: ConversationCounts) {
        messagesSent = counts.messagesSent
        bytesSent = counts.bytesSent
        messagesReceived = counts.messagesReceived
        bytesReceived = counts.bytesReceived
        messagesResent = counts.messagesResent
        unreliableSent = counts.unreliableSent
        unreliableDropped = counts.unreliableDropped
        unreliableReceived = counts.unreliableReceived
        unreliableUnread = counts.unreliableUnread
        streamsOpened = counts.streamsOpened
        streamBytesSent = counts.streamBytesSent
        streamBytesReceived = counts.streamBytesReceived
        reconnects = counts.reconnects
    }
}
