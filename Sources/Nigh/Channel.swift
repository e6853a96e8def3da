import NighChannels
import NighCore

/// A channel of a session: messages of its own, beside those of the session and of other channels, with the connected
/// peers that have opened a channel of the same name.
///
/// So a library can use the session of its program without either taking the other's messages. Messages that nobody
/// reads slow down those who send in this channel, and nothing else. Messages to a peer that has not opened the channel
/// wait there until it does.
public final class Channel: Sendable {
    let port: ChannelPort
    private let channels: Channels

    init(_ port: ChannelPort, of channels: Channels) {
        self.port = port
        self.channels = channels
    }

    /// A channel that nobody uses any more is closed.
    deinit { channels.close(port) }

    /// The name, which is the same at all peers that use the channel.
    public var name: String { port.name }

    /// The messages of all peers. Each message goes to one reader.
    public var messages: ChannelMessages { ChannelMessages(channel: self) }

    /// The messages of all peers as values of one type; see ``Session/messages(of:)``.
    public func messages<Content: Decodable & Sendable>(of type: Content.Type) -> TypedMessages<Content> {
        TypedMessages(session: port.session, messages: .channel(self))
    }

    /// Sends a value to a peer; see ``send(bytes:to:)``.
    public nonisolated(nonsending) func send(_ value: some Encodable, to peer: Peer) async throws(NighError) {
        try await send(bytes: port.session.encode(value, to: peer), to: peer)
    }

    /// Sends bytes as they are to a peer. They arrive exactly once and in the order of the calls, unless the
    /// conversation ends or the peer closes the channel. Waits while much waits to be sent. Returns when the session
    /// has accepted the message, which is before it arrives. If the task is cancelled, the call fails and nothing was
    /// sent. Fails if the peer's program is of a version without channels.
    public nonisolated(nonsending) func send(
        bytes: some Collection<UInt8>, to peer: Peer
    ) async throws(NighError) {
        let isSent = bytes.withContiguousStorageIfAvailable {
            port.sendAtOnce(UnsafeRawBufferPointer($0), to: peer.id)
        }
        if isSent != true { try await port.send(ByteSlice(bytes), to: peer) }
    }

    /// Sends a value to all connected peers; see ``broadcast(bytes:)``.
    public nonisolated(nonsending) func broadcast(_ value: some Encodable) async throws(PartialSendError) {
        try await broadcast(bytes: port.session.encode(value, to: port.session.connectedPeers))
    }

    /// Sends bytes as they are to all connected peers, as ``send(bytes:to:)`` does to each. It is no error if a peer
    /// disconnects in the meantime, or if its program has no channels.
    public nonisolated(nonsending) func broadcast(
        bytes: some Collection<UInt8>
    ) async throws(PartialSendError) {
        let frame = ByteSlice(bytes).withUnsafeBytes { StreamMessageParser.frame($0) }
        try await PartialSendError.gather(
            port.session.connectedPeers, id: \.id, passingOver: Self.isPassedOver
        ) { peer throws(NighError) in
            try await port.send(frame: frame, to: peer)
        }
    }

    /// Peers that have left, or whose program has no channels.
    private static func isPassedOver(_ error: NighError) -> Bool {
        if case .unsupported = error.cause { true } else { error.isDisconnection }
    }

    // MARK: Streams

    /// Opens a stream of bytes to a peer, whose program gets it from its channel of the same name; see
    /// ``Peer/openStream(named:)``. The name that both see is "CHANNEL/NAME", at most 255 bytes.
    public nonisolated(nonsending) func openStream(
        named name: String, to peer: Peer
    ) async throws(NighError) -> ByteStream {
        try await port.openStream(named: name, to: peer)
    }

    /// The streams that peers open in this channel. If more than 256 wait for the program, the oldest is cancelled.
    public var streams: Incoming<ByteStream> { port.streams }

    /// Closes the channel: its sequences end, and its name can be used anew. Messages that were sent still arrive.
    public func close() { channels.close(port) }
}

/// The messages of a channel, in the order in which each peer has sent them.
public struct ChannelMessages: AsyncSequence, Sendable {
    /// Kept, or the channel would end while somebody reads it.
    let channel: Channel

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let channel: Channel

        /// The next message, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Message? {
            await channel.port.next()
        }

        /// The next message; nil after the last, or if the task is cancelled.
        public mutating func next() async -> Message? { await next(isolation: nil) }
    }
}

extension Session {
    /// Opens a channel, for the messages of one part of the program; see ``Channel``. Fails if this session has a
    /// channel of that name already.
    ///
    /// - Parameters:
    ///   - name: 1 to 255 bytes without control characters or slashes, the same at all peers that use the channel.
    ///   - onMessage: called with each message, on the session's own thread, which it must not block. The bytes are
    ///     valid during the call, and nothing is copied. Messages then do not go to ``Channel/messages``.
    public func channel(
        _ name: String, onMessage: (@Sendable (_ bytes: RawSpan, _ origin: MessageOrigin) -> Void)? = nil
    ) throws(NighError) -> Channel {
        let channels = try required(Channels.self, "channels")
        return Channel(try channels.open(name, onMessage: onMessage), of: channels)
    }
}
