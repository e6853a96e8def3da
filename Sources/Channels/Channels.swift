import NighCore
import Synchronization

/// The channels of one session: messages beside those of the program, each channel's in streams of their own, so that
/// a slow reader of one slows nobody else.
///
/// A layer of its session. Messages in a channel that the program has not opened yet wait, and so do the peers that
/// send them.
package final class Channels: ConversationLayer {
    private struct State {
        var session: SessionReference?
        var messageLimit = 0
        var open: [String: ChannelPort] = [:]
        /// The streams of channels that are not open, by name.
        var waiting: [String: [ByteStream]] = [:]
        var waitingCount = 0
        var isClosed = false

        mutating func takeWaiting(_ name: String) -> [ByteStream] {
            let streams = waiting.removeValue(forKey: name) ?? []
            waitingCount -= streams.count
            return streams
        }
    }

    /// Streams of channels that are not open. Further ones are cancelled.
    package static let waitingLimit = 256
    static let closed = "it is closed"
    /// Stands between the names of a channel and of a stream.
    static let separator: Character = "/"

    private let state = Mutex(State())

    package init() {}

    // MARK: The layer

    /// The purposes of streams for channels.
    package var purposes: [StreamPurpose] { [.channel, .channelStream] }

    /// Begins to carry the channels of a session.
    package func attach(to session: Session) {
        state.withLock { state in
            state.session = session.reference
            state.messageLimit = session.configuration.limits.message
        }
    }

    /// Takes a stream in which a peer sends messages of a channel, or one that belongs to a channel.
    package func receive(_ stream: ByteStream) {
        var channel = Substring(stream.name)
        if stream.purpose == .channel {
            // This side's messages are in a stream of its own.
            stream.finish()
        } else {
            channel = channel.prefix { $0 != Self.separator }
        }
        let (port, isRefused) = state.withLock { [name = String(channel)] state -> (ChannelPort?, Bool) in
            if let port = state.open[name] { return (port, false) }
            guard state.waitingCount < Self.waitingLimit, !state.isClosed else { return (nil, true) }
            state.waiting[name, default: []].append(stream)
            state.waitingCount += 1
            return (nil, false)
        }
        port?.take(stream)
        if isRefused { stream.cancel(because: "nobody there uses the channel") }
    }

    /// Forgets the streams of a conversation that is over.
    package func handle(_ event: SessionEvent) {
        guard case .disconnected(let peer, _) = event else { return }
        let ports = state.withLock { state in
            for (name, streams) in state.waiting {
                let left = streams.filter { $0.peer != peer.id }
                state.waitingCount -= streams.count - left.count
                state.waiting[name] = left.isEmpty ? nil : left
            }
            return Array(state.open.values)
        }
        for port in ports { port.forget(peer.id) }
    }

    /// Ends all channels.
    package func sessionDidClose() {
        let ports = state.withLock { state in
            state.isClosed = true
            defer {
                state.open = [:]
                state.waiting = [:]
            }
            return Array(state.open.values)
        }
        for port in ports { port.finish() }
    }

    // MARK: The program

    /// Opens a channel. Fails if it is open already, or if nothing can have that name.
    ///
    /// - Parameter onMessage: called on the loop with each message, which then does not wait for a reader.
    package func open(_ name: String, onMessage: MessageHandler? = nil) throws(NighError) -> ChannelPort {
        guard !name.isEmpty, StreamControl.isName(name), !name.contains(Self.separator) else {
            throw NighError(
                .configuring, .invalid("name of a channel: \"\(name)\""),
                advice: "use 1 to 255 bytes, no control characters and no slash")
        }
        let (port, streams) = try state.withLock { state throws(NighError) in
            guard let session = state.session, !state.isClosed else { throw NighError(.configuring, .closed) }
            guard state.open[name] == nil else {
                throw NighError(
                    .configuring, .invalid("channel \"\(name)\": it is open already"),
                    advice: "use that one, or another name")
            }
            let port = ChannelPort(
                name, of: session, messageLimit: state.messageLimit, onMessage: onMessage)
            state.open[name] = port
            return (port, state.takeWaiting(name))
        }
        port.session.loop.execute { for stream in streams { port.take(stream) } }
        return port
    }

    /// Closes a channel. Messages that were sent still arrive; unread ones are dropped.
    package func close(_ port: ChannelPort) {
        state.withLock { state in
            if state.open[port.name] === port { state.open[port.name] = nil }
        }
        port.finish()
    }
}
