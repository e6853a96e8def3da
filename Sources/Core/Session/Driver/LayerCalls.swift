/// The layers of a session as its driver calls them, all in one. `Session` makes it from its list of layers.
final class LayerCalls {
    /// Returns whether a layer answers the invitation.
    let answers: @Sendable (Invitation) -> Bool
    let handle: EventHandler
    let willClose: @Sendable () -> Void
    let didClose: @Sendable () -> Void
    let observers: [any LinkObserver]
    /// The receivers of streams that are not the program's.
    let streams: [StreamPurpose: @Sendable (ByteStream) -> Void]
    /// The receivers of messages of kinds.
    let receivers: KindReceivers

    init(
        answers: @escaping @Sendable (Invitation) -> Bool, handle: @escaping EventHandler,
        willClose: @escaping @Sendable () -> Void, didClose: @escaping @Sendable () -> Void,
        observers: [any LinkObserver], streams: [StreamPurpose: @Sendable (ByteStream) -> Void],
        receivers: KindReceivers
    ) {
        self.answers = answers
        self.handle = handle
        self.willClose = willClose
        self.didClose = didClose
        self.observers = observers
        self.streams = streams
        self.receivers = receivers
    }
}

/// Receives the messages of a kind, as `ConversationLayer.receive` says.
typealias KindReceiver =
    @Sendable (_ bytes: RawSpan, _ kind: MessageKind, _ origin: MessageOrigin) -> KindMessagePlace?

/// The receivers for messages of kinds, found by kind without a search.
struct KindReceivers {
    /// By the number of the kind; empty if there are none.
    private var byKind: ContiguousArray<KindReceiver?> = []

    var isEmpty: Bool { byKind.isEmpty }

    subscript(kind: MessageKind) -> KindReceiver? { isEmpty ? nil : byKind[Int(kind.rawValue)] }

    /// Returns false if the kind has a receiver already.
    mutating func add(_ kind: MessageKind, _ receiver: @escaping KindReceiver) -> Bool {
        if isEmpty { byKind = ContiguousArray(repeating: nil, count: 256) }
        guard byKind[Int(kind.rawValue)] == nil else { return false }
        byKind[Int(kind.rawValue)] = receiver
        return true
    }
}
